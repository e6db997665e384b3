#!/usr/bin/env python3
"""Never: a listening port on a non-loopback address that the user did not ask for. The sockets of every command that listens, and of
those that have no reason to, as the kernel lists them while they run."""
from never import *

import glob
import ipaddress

LISTENS = "0A"  # of /proc/net/tcp; a UDP socket that is bound is 07


def address_of(text):
    """'0100007F:1F90' as the kernel writes it: words in the machine's order."""
    host, port = text.split(":")
    raw = bytes.fromhex(host)
    raw = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    return ipaddress.ip_address(raw), int(port, 16)


def sockets_of(pid):
    inodes = set()
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(path)))
        except OSError:
            pass
    found = []
    for table, states in (("tcp", LISTENS), ("tcp6", LISTENS), ("udp", "07"), ("udp6", "07")):
        try:
            with open("/proc/%d/net/%s" % (pid, table)) as file:
                lines = list(file)[1:]
        except OSError:
            lines = []  # it has ended
        for line in lines:
            fields = line.split()
            if fields[3] == states and fields[9] in inodes:
                found.append(address_of(fields[1]))
    return found


def is_loopback(address):
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def check_listeners(program, count, where="loopback"):
    """As many listeners as are known, and nowhere else."""
    found = soon(20 * SLOW, lambda: [s for s in [sockets_of(program.pid)] if len(s) == count or not program.is_alive()])
    found = found[0] if found else sockets_of(program.pid)
    is_good = len(found) == count and all(is_loopback(address) == (where == "loopback") for address, _ in found)
    check("%s: %d on %s" % (program.said, count, where), is_good, "%s %s" % (found, program.tail()))


def start(said, *args, env=None):
    program = Program("tandem " + args[0], *args, env=env)
    program.said = said
    return program


cluster = Cluster()
cluster.said = "up --listen 127.0.0.1:0"
check_listeners(cluster, 2)  # the API server and the page
cluster.deploy("web")
cluster.vpa("web", "Off")
kubeconfig = ["--kubeconfig", cluster.kubeconfig, "--leader-elect"]  # replicas of one installation

up = start("up as it is", "up", "-q", "--kubeconfig", os.path.join(work, "second"))
bare = start("up --page off", "up", "-q", "--page", "off", "--listen", "127.0.0.1:0", "--kubeconfig", os.path.join(work, "third"))
run = start("run as it is", "run", *kubeconfig)
hook = start("run with a webhook", "run", *kubeconfig, "--address", "127.0.0.1:0", "--webhook-listen", "127.0.0.1:0")
named = start("run with a webhook on ::1 and no address", "run", *kubeconfig, "--address=", "--webhook-listen", "[::1]:0")
asked = start("run --address :0, which asks for it", "run", *kubeconfig, "--address", ":0", "--controllers", "recommender")
time.sleep(3)  # what listens late would be seen
check_listeners(up, 2)
check_listeners(bare, 1)
check_listeners(run, 2)
check_listeners(hook, 2)
check_listeners(named, 1)
check_listeners(asked, 1, "every interface")

for address in ("0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "[::ffff:0.0.0.0]:0", "127.0.0.1.example.com:0"):
    refused = start("--webhook-listen " + address, "run", *kubeconfig, "--address", "127.0.0.1:0", "--webhook-listen", address)
    try:
        status = refused.process.wait(5 * SLOW)
    except subprocess.TimeoutExpired:
        status = None
    check("%s is refused" % refused.said, status == 2, "status %s, %s %s" % (status, sockets_of(refused.pid), refused.tail()))
    refused.kill()

# Those that only look, while they look: the cluster does not answer, since no server is there.
with socket.socket() as mute:
    mute.bind(("127.0.0.1", 0))
    mute.listen(16)
    silent = os.path.join(work, "silent")
    with open(silent, "w") as file:
        server = "http://127.0.0.1:%d" % mute.getsockname()[1]
        contexts = "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\nusers: [{name: a, user: {}}]\n"
        file.write("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: '%s'}}]\n%s" % (server, contexts))
    for args in (["explain", "vpa", "web"], ["recommend"]):
        looker = start(args[0], *args, "--kubeconfig", silent)
        time.sleep(1)
        check("%s is at work" % looker.said, looker.is_alive(), looker.tail())
        check_listeners(looker, 0)
        looker.kill()
simulate = start("simulate", "simulate", os.path.join(TOP, "examples/shop"), "--for", "3650d", "-q", "-o", "json")
time.sleep(0.5)
check("simulate is at work", simulate.is_alive(), simulate.tail())
check_listeners(simulate, 0)
simulate.kill()
finish()
