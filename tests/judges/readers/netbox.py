"""What NetBox imports of lists of devices, interfaces and cables: `netbox.py SOURCE QUESTION ANSWER`.

It runs the forms of its import pages on a PostgreSQL of its own, without Redis. What has to stand before (a site, a
manufacturer, and each role, type and rack that a list names) is made first, as docs/exports.md says.
"""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

ACCOUNT = "postgres"  # PostgreSQL does not run as root


def by_account(*words):
    """Run a program of PostgreSQL, as its own account where this is root."""
    account = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*account, *map(str, words)], check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextmanager
def database():
    """A folder with the socket of a PostgreSQL that is gone afterwards."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    folder = Path(tempfile.mkdtemp(prefix="netbox-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, ACCOUNT)
    data, settings = folder / "data", f"-k {folder} -c listen_addresses= -c fsync=off"
    by_account(programs / "initdb", "-U", "netbox", "-E", "UTF8", "-D", data)
    by_account(programs / "pg_ctl", "-w", "-D", data, "-l", folder / "log", "-o", settings, "start")
    try:
        yield folder
    finally:
        by_account(programs / "pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def set_up(source, folder):
    """Load NetBox, and create its tables as the newest version has them."""
    sys.path.insert(0, str(Path(source, "netbox")))
    own = {"NAME": "postgres", "USER": "netbox", "HOST": str(folder)}
    redis = {"tasks": {}, "caching": {}}
    sys.modules["judge"] = SimpleNamespace(
        ALLOWED_HOSTS=[], SECRET_KEY="x" * 50, REDIS=redis, DATABASES={"default": own}
    )
    os.environ |= {"NETBOX_CONFIGURATION": "judge", "DJANGO_SETTINGS_MODULE": "netbox.settings"}
    from django.conf import settings

    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    import django

    django.setup()
    from django.apps import apps
    from django.contrib.contenttypes.models import ContentType
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE COLLATION natural_sort (provider = icu, locale = 'und-u-kn-true')")
    models = [model for model in apps.get_models() if model._meta.managed and not model._meta.proxy]
    with connection.schema_editor() as editor:
        for model in models:
            editor.create_model(model)
    for model in models:
        ContentType.objects.get_for_model(model)


def imported(form, text):
    """Faults of a list; what has none is saved."""
    faults = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        one = form(row, headers=dict.fromkeys(row))
        if one.is_valid():
            one.save()
        else:
            faults.append(f"line {number}: {one.errors.as_json()}")
    return faults


def stand(devices):
    """What devices name is there."""
    from dcim import models

    rows = list(csv.DictReader(io.StringIO(devices)))
    sites = {name: models.Site.objects.create(name=name, slug=name) for name in {row["site"] for row in rows}}
    makers = {
        name: models.Manufacturer.objects.create(name=name, slug=name) for name in {row["manufacturer"] for row in rows}
    }
    for number, role in enumerate({row["role"] for row in rows}):
        models.DeviceRole.objects.create(name=role, slug=f"role{number}")
    for number, (maker, model) in enumerate({(row["manufacturer"], row["device_type"]) for row in rows}):
        models.DeviceType.objects.create(manufacturer=makers[maker], model=model, slug=f"type{number}")
    for site, rack in {(row["site"], row["rack"]) for row in rows if row["rack"]}:
        models.Rack.objects.create(site=sites[site], name=rack)


def read(files):
    """Faults of three lists, and the cables that NetBox then has: label, ends and length (m)."""
    from dcim import models
    from dcim.forms import bulk_import
    from django.db import transaction

    with transaction.atomic():
        stand(files["devices"])
        faults = imported(bulk_import.DeviceImportForm, files["devices"])
        faults += imported(bulk_import.InterfaceImportForm, files["interfaces"])
        faults += imported(bulk_import.CableImportForm, files["cables"])
        cables = [
            [
                cable.label,
                *([end.device.name, end.name] for side in (cable.a_terminations, cable.b_terminations) for end in side),
                None if cable.length is None else float(cable.length),
            ]
            for cable in models.Cable.objects.all()
        ]
        speeds = sorted(models.Interface.objects.values_list("speed", flat=True))
        devices = models.Device.objects.count()
        transaction.set_rollback(True)
    return {"faults": faults, "cables": cables, "speeds": speeds, "devices": devices}


if __name__ == "__main__":
    source, question, answer = sys.argv[1:]
    with database() as folder:
        set_up(source, folder)
        found = [read(files) for files in json.loads(Path(question).read_text("utf-8"))]
    Path(answer).write_text(json.dumps(found), "utf-8")
