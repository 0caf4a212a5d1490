#!/usr/bin/env python
"""Django's command line for OKMQ."""

import os
import sys

NOT_CONFIGURED = 2


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "okmq.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)
        sys.exit(NOT_CONFIGURED)


if __name__ == "__main__":
    main()
