from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0035_what_the_history_missed'),
    ]

    operations = [
        migrations.AddField(
            model_name='standingrollup',
            name='made_ms',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='standingrollup',
            name='grown',
            field=models.JSONField(null=True),
        ),
    ]
