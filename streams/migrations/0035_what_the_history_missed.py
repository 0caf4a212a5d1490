from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0034_when_a_notification_was_tried'),
    ]

    operations = [
        migrations.AddField(
            model_name='removalcount',
            name='missed',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='removalcount',
            name='missed_at',
            field=models.DateTimeField(null=True),
        ),
    ]
