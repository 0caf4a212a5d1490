from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0044_webhook_formats'),
    ]

    operations = [
        migrations.AddField(
            model_name='erasure',
            name='progress',
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
    ]
