from typing import Any

from django.db import migrations, models

BLOCK = 1_000_000


def reserve(apps: Any, schema_editor: Any) -> None:
    """What the log was told of has given some, maybe; the worker raises those of larger streams in its first second."""
    apps.get_model("streams", "Stream").objects.filter(is_told=True).update(offsets_reserved=BLOCK)


class Migration(migrations.Migration):

    dependencies = [
        ('streams', '0045_how_far_an_erasure_is'),
    ]

    operations = [
        migrations.AddField(
            model_name='stream',
            name='offsets_reserved',
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.RunPython(reserve, migrations.RunPython.noop),
    ]
