"""What was counted of streams while they were deleted goes: no erasure would reach the keys and fields that it names."""

from django.db import migrations


def go(apps, schema_editor):  # type: ignore[no-untyped-def]
    """Of a stream that is not there nobody asks for the past."""
    there = apps.get_model("streams", "Stream").objects.order_by().values("stream_id")
    for name in ("Rollup", "StandingRollup", "RollupPosition"):
        apps.get_model("streams", name).objects.exclude(stream_id__in=there).delete()


class Migration(migrations.Migration):
    dependencies = [("streams", "0051_minutes_of_what_rules_watch")]

    operations = [migrations.RunPython(go, migrations.RunPython.noop)]
