"""What people took away is counted by the log, so what retention removed is one number."""

from django.db import migrations
from django.db.models import F


def without_by_hand(apps, schema_editor):  # type: ignore[no-untyped-def]
    """What went by hand since the last event was not retention's; the log begins to count at zero."""
    apps.get_model("streams", "RemovalCount").objects.update(
        messages=F("messages") + F("by_hand_messages"), bytes=F("bytes") + F("by_hand_bytes")
    )


class Migration(migrations.Migration):
    dependencies = [("streams", "0028_alert_rules_say_why_they_are_muted")]

    operations = [
        migrations.RunPython(without_by_hand, migrations.RunPython.noop),
        migrations.RemoveField("removalcount", "by_hand_messages"),
        migrations.RemoveField("removalcount", "by_hand_bytes"),
    ]
