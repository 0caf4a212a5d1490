from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0031_stages_and_tasks_of_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='erasure',
            name='deleted_workspace',
            field=models.CharField(blank=True, db_default='', default='', max_length=50),
        ),
    ]
