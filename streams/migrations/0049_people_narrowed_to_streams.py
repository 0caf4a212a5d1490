from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0048_what_an_erasure_means'),
    ]

    operations = [
        migrations.AddField(
            model_name='membership',
            name='streams',
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
