"""``okmq.settings`` in a folder of its own, whatever the machine's environment or ``.env`` says.

A process that a test starts inherits the folder.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from okmq import env as environment

_INHERITED = "OKMQ_TESTS_DATA_DIR"

if _INHERITED not in os.environ:
    _folder = tempfile.mkdtemp(prefix="okmq-tests-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    _given = {*os.environ, *environment.read_dotenv(environment.PROJECT / ".env")}
    os.environ.update({name: "" for name in _given if name.startswith("OKMQ_")})
    os.environ[_INHERITED] = os.environ["OKMQ_DATA_DIR"] = _folder

# A Java that lives for a few seconds is sooner done when it compiles less and collects with one thread.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

from okmq.settings import *  # noqa: F403
from okmq.settings import DATABASES, ENV

# A file, as in the product: what differs between threads and connections shows in tests too.
DATABASES["default"]["TEST"] = {"NAME": str(Path(ENV.data_dir, "tests.sqlite3"))}
# No test cuts the power: what is written need not reach the disk.
DATABASES["default"]["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"

# A password that is dear to try costs each login half a second of a test's time.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
