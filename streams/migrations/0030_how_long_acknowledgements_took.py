from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0029_retention_counted_without_what_people_took'),
    ]

    operations = [
        migrations.AddField(
            model_name='standingrollup',
            name='ack_ms_seen',
            field=models.JSONField(default=dict, db_default={}),
        ),
        migrations.AddField(
            model_name='standingrollup',
            name='ack_ms_ever',
            field=models.JSONField(null=True),
        ),
    ]
