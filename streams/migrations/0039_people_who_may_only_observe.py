from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0038_filters_with_names'),
    ]

    operations = [
        migrations.AlterField(
            model_name='membership',
            name='role',
            field=models.CharField(choices=[('observer', 'Observer'), ('viewer', 'Viewer'), ('operator', 'Operator'), ('admin', 'Admin')], default='viewer', max_length=20),
        ),
    ]
