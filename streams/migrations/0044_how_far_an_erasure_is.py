from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0043_dead_letters_of_erasures'),
    ]

    operations = [
        migrations.AddField(
            model_name='erasure',
            name='progress',
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
    ]
