"""kubectl on the real server of a bed, and on a local one beside it."""

import contextlib
import os
import subprocess
import tempfile

from bed import eventually


@contextlib.contextmanager
def local(bed):
    """kubectl on a local cluster: (arguments, text) -> (status, what it said)."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        up = subprocess.Popen([os.path.join(bed.build, "tandem"), "up", "--quiet", "--listen", "127.0.0.1:0", "--kubeconfig", config],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        def kubectl(*args, text=None):
            done = subprocess.run(["kubectl", "--kubeconfig", config, *args], env=bed.env, capture_output=True, text=True, input=text, timeout=60)
            return done.returncode, done.stdout + done.stderr
        try:
            eventually(30, lambda: kubectl("get", "--raw", "/readyz")[0] == 0, "the local cluster is there")
            yield kubectl
        finally:
            up.terminate()
            up.wait()


def real(bed):
    def kubectl(*args, text=None):
        done = subprocess.run(["kubectl", *args], env=bed.env, capture_output=True, text=True, input=text, timeout=60)
        return done.returncode, done.stdout + done.stderr
    return kubectl
