from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0047_how_far_an_erasure_reaches'),
    ]

    operations = [
        migrations.AddField(
            model_name='query',
            name='counts_to',
            field=models.PositiveBigIntegerField(db_default=None, default=None, null=True),
        ),
        migrations.AddField(
            model_name='erasure',
            name='spared',
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
