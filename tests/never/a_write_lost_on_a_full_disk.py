#!/usr/bin/env python3
"""Never: a write lost on a full disk. The disk ends in the middle of writes (a limit of the file size does what a full disk does, without
rights): from then on nothing is acknowledged, reads go on, /readyz says why, and once there is room it goes on by itself. What was
acknowledged is there after kill -9. Beside it: who else may touch the folder."""
from never import *

import resource

MAPS = "/api/v1/namespaces/default/configmaps"
data = os.path.join(work, "data")
acknowledged = {}


def write(cluster, name, size=2000):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": name * (size // len(name))}}
    status, text = cluster.call("POST", MAPS, body)
    if status == 201:
        acknowledged[name] = json.loads(text)["metadata"]["resourceVersion"]
    return status, text


def limit(cluster, size):
    resource.prlimit(cluster.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def holds(cluster):
    there = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in cluster.items(MAPS)}
    return all(there.get(name) == version for name, version in acknowledged.items())


def refused(said, part, *args):
    """A start that ends at once with one line."""
    run = subprocess.run([TANDEM, "up", "-q", "--controllers", "none", "--listen", "127.0.0.1:0", "--kubeconfig", os.path.join(work, "none"),
                          "--data", *args], capture_output=True, text=True, timeout=60 * SLOW)
    check(said, run.returncode == 2 and part in run.stderr and run.stderr.count("\n") == 1, "%d %s" % (run.returncode, run.stderr))


cluster = Cluster("--data", data)
for number in range(20):
    write(cluster, "before-%d" % number)
check("it is ready", cluster.call("GET", "/readyz") == (200, "ok"))
size = max(os.path.getsize(os.path.join(data, name)) for name in os.listdir(data) if name.startswith("log-"))
limit(cluster, size + 5000)
answers = [write(cluster, "full-%d" % number) for number in range(8)]
refusals = [answer for answer in answers if answer[0] != 201]
check("some writes are refused", 4 <= len(refusals) < 8 and all(status == 500 for status, _ in refusals), [a[0] for a in answers])
check("they say why", all("storage failed" in text and "File too large" in text for _, text in refusals), refusals[-1:])
status, text = cluster.call("GET", "/readyz")
check("/readyz says why", status == 500 and "[-]storage failed: write " in text and "readyz check failed" in text, text)
check("/livez does not", cluster.call("GET", "/livez") == (200, "ok"))
check("reads go on", holds(cluster))
time.sleep(0.7)
check("a little room is not enough", write(cluster, "tried", 200)[0] == 500 and cluster.call("GET", "/readyz")[0] == 500)
limit(cluster, resource.RLIM_INFINITY)
check("it heals by itself", soon(10 * SLOW, lambda: cluster.call("GET", "/readyz") == (200, "ok")), cluster.call("GET", "/readyz")[1])
for number in range(20):
    status, text = write(cluster, "after-%d" % number)
    if status != 201:
        break
check("writes go on", status == 201, text)
check("nothing was lost", holds(cluster))
limit(cluster, size)
write(cluster, "again")
time.sleep(0.7)
limit(cluster, resource.RLIM_INFINITY)
check("a write is enough to heal", soon(10 * SLOW, lambda: write(cluster, "healer-%d" % next(numbers))[0] == 201))

os.unlink(os.path.join(data, "lock"))
refused("without its lock file it is still in use", "in use by another process", data)
refused("under another name too", "in use by another process", os.path.join(work, ".", "data") + "/")
cluster.kill()
cluster = Cluster("--data", data)
check("after kill -9 all that was acknowledged is there", holds(cluster) and len(acknowledged) > 40, len(acknowledged))
cluster.end()

os.symlink(data, os.path.join(work, "link"))
refused("a folder by a symbolic link is refused", "symbolic link", os.path.join(work, "link"))
refused("with a slash too", "symbolic link", os.path.join(work, "link") + "/")
for mode in (0o777, 0o720, 0o702):
    os.chmod(data, mode)
    refused("a folder of mode %o is refused" % mode, "can be written to by others (mode %04o): chmod go-w %s" % (mode, data), data)
os.chmod(data, 0o755)
log = [os.path.join(data, name) for name in os.listdir(data) if name.startswith("log-")][0]
os.chmod(log, 0o666)
refused("a log of mode 666 is refused", "chmod go-w " + log, data)
os.chmod(log, 0o600)
os.rename(log, os.path.join(work, "log"))
os.symlink(os.path.join(work, "log"), log)
refused("a log by a symbolic link is refused", "symbolic link", data)
os.unlink(log)
os.mkfifo(log)
refused("a pipe is refused", "not a plain file", data)
os.unlink(log)
os.rename(os.path.join(work, "log"), log)

cluster = Cluster("--data", data)
check("as it was it is taken again", holds(cluster))
shutil.rmtree(data)
check("a folder that was removed takes no writes", write(cluster, "lost")[0] == 500, "")
check("/readyz says that", "was removed while it was in use" in cluster.call("GET", "/readyz")[1], cluster.call("GET", "/readyz")[1])
finish()
