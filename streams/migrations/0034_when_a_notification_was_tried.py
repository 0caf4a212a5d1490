from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0032_erasures_of_deleted_workspaces'),
    ]

    operations = [
        migrations.AddField(
            model_name='notification',
            name='tried_at',
            field=models.DateTimeField(null=True),
        ),
    ]
