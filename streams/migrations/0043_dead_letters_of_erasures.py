from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0042_alerts_keep_their_newest_figures'),
    ]

    operations = [
        migrations.AddField(
            model_name='erasure',
            name='dead_letters',
            field=models.PositiveBigIntegerField(null=True),
        ),
    ]
