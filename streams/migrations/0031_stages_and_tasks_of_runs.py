from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0030_how_long_acknowledgements_took'),
    ]

    operations = [
        *(
            migrations.AddField(
                model_name='run',
                name=name,
                field=models.PositiveIntegerField(default=0, db_default=0),
            )
            for name in ('stages', 'stages_done', 'tasks', 'tasks_done')
        ),
    ]
