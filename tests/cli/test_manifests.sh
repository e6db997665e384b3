#!/bin/sh
# `tandem manifests` from outside: every object is one that `tandem validate` accepts, parts are parts, what is removed is all of
# it, and what cannot be is refused in one line.
. "$(dirname "$0")/lib.sh"

# kinds ARGS...: the kinds that are printed, in order, on one line
kinds() { "$tandem" manifests "$@" | sed -n 's/^kind: //p' | tr '\n' ' '; }
# is NAME EXPECTED GOT
is() {
    count=$((count + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1: got '$3', expected '$2'"
        failed=$((failed + 1))
    fi
}

"$tandem" manifests >"$work/all.yaml"
check "every object is valid" 0 '^no problems in 31 objects ' '' validate "$work/all.yaml"
check "two replicas" 0 '^  replicas: 2$' '' manifests --only deployment
check "no container runs as root" 0 'runAsNonRoot: true' '' manifests --only deployment
check "nothing is written" 0 'readOnlyRootFilesystem: true' '' manifests --only deployment
check "no capabilities" 0 '^ +- ALL$' '' manifests --only deployment
check "only known calls" 0 'type: RuntimeDefault' '' manifests --only deployment
check "one leads" 0 '[-] --leader-elect$' '' manifests --only deployment
check "its image" 0 'image: registry.example/tandem:1$' '' manifests --image registry.example/tandem:1
check "failures are ignored" 0 'failurePolicy: Ignore' '' manifests --only webhooks
check "its own namespace is exempt" 0 'operator: NotIn' '' manifests --only webhooks
is "definitions" "CustomResourceDefinition CustomResourceDefinition CustomResourceDefinition CustomResourceDefinition " "$(kinds --only crds)"
is "webhooks" "MutatingWebhookConfiguration ValidatingWebhookConfiguration " "$(kinds --only webhooks)"
is "deployment" "Deployment PodDisruptionBudget NetworkPolicy Service " "$(kinds --only deployment)"
is "rights of one" "ServiceAccount ClusterRole ClusterRoleBinding Role RoleBinding " "$(kinds --only rbac --controllers recommender)"
is "without a webhook" "Deployment PodDisruptionBudget NetworkPolicy " "$(kinds --only deployment --controllers recommender)"
is "two parts" "MutatingWebhookConfiguration ValidatingWebhookConfiguration Deployment PodDisruptionBudget NetworkPolicy Service " "$(kinds --only webhooks,deployment)"
is "one that only recommends may not touch pods" 0 "$("$tandem" manifests --only rbac --controllers recommender | grep -cE 'pods/|secrets|webhook')"
is "everything is in its namespace" 0 "$("$tandem" manifests --namespace scaling | grep -c 'namespace: kube-system')"
is "what is installed is removed" "$("$tandem" manifests | sed -n 's/^kind: //p' | sort | uniq | tr '\n' ' ')" \
    "$("$tandem" manifests --uninstall | sed -n 's/^kind: //p' | grep -vE '^(Lease|Secret)$' | sort | uniq | tr '\n' ' ')"
is "the program goes first" Deployment "$("$tandem" manifests --uninstall | sed -n 's/^kind: //p' | head -n 1)"
is "with its leases and its certificate" "5 1" "$("$tandem" manifests --uninstall | grep -c '^kind: Lease$') $("$tandem" manifests --uninstall | grep -c '^kind: Secret$')"
check "HPAs of the cluster" 0 '[-] --horizontal=builtin$' '' manifests --horizontal builtin
check "a part that is none" 2 '' "^tandem: manifests: --only: 'crd': must be one of crds, rbac, " manifests --only crd
check "a namespace that is none" 2 '' "^tandem: manifests: --namespace: 'Scaling': must be a lower case DNS label" manifests --namespace Scaling
check "an image that is none" 2 '' "^tandem: manifests: --image: '': " manifests --image ''
check "a controller that is none" 2 '' "^tandem: manifests: --controllers: 'x': must be one of " manifests --controllers x
check "an unknown option" 2 '' '^tandem: manifests: --nope: unknown option' manifests --nope
check "words beside options" 2 '' "^tandem: manifests: 'all': takes options only" manifests all
check "help of the command" 0 '^usage: tandem manifests ' '' manifests --help
finish
