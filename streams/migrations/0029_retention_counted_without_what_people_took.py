"""What people took away is counted by the log, so what retention removed is one number."""

from django.db import migrations, models
from django.db.models import F


def without_by_hand(apps, schema_editor):  # type: ignore[no-untyped-def]
    """What went by hand since the last event was not retention's; the log begins to count at zero."""
    apps.get_model("streams", "RemovalCount").objects.update(
        messages=F("messages") + F("by_hand_messages"), bytes=F("bytes") + F("by_hand_bytes")
    )


NO_LONGER_USED = ("by_hand_messages", "by_hand_bytes")


class Migration(migrations.Migration):
    dependencies = [("streams", "0028_alert_rules_say_why_they_are_muted")]

    operations = [
        migrations.RunPython(without_by_hand, migrations.RunPython.noop),
        # The columns stay for hosts of the version before, which write them; this one leaves them to their default.
        *(
            migrations.AlterField("removalcount", name, models.BigIntegerField(default=0, db_default=0))
            for name in NO_LONGER_USED
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("removalcount", name) for name in NO_LONGER_USED]
        ),
    ]
