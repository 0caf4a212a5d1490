from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0046_offsets_reserved'),
    ]

    operations = [
        migrations.AddField(
            model_name='erasure',
            name='up_to',
            field=models.PositiveBigIntegerField(db_default=None, default=None, null=True),
        ),
    ]
