#!/bin/sh
# `tandem manifests` from outside: every object is one that `tandem validate` accepts, parts are parts, what is removed is all of
# it, and what cannot be is refused in one line.
. "$(dirname "$0")/lib.sh"

# kinds ARGS...: the kinds that are printed, in order, on one line
kinds() { "$tandem" manifests --image registry.example/tandem:1 "$@" | sed -n 's/^kind: //p' | tr '\n' ' '; }
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

"$tandem" manifests --image registry.example/tandem:1 >"$work/all.yaml"
check "every object is valid" 0 '^no problems in 34 objects ' '' validate "$work/all.yaml"
check "two replicas" 0 '^  replicas: 2$' '' manifests --only deployment --image a
check "no container runs as root" 0 'runAsNonRoot: true' '' manifests --only deployment --image a
check "nothing is written" 0 'readOnlyRootFilesystem: true' '' manifests --only deployment --image a
check "no capabilities" 0 '^ +- ALL$' '' manifests --only deployment --image a
check "only known calls" 0 'type: RuntimeDefault' '' manifests --only deployment --image a
check "one leads" 0 '[-] --leader-elect$' '' manifests --only deployment --image a
check "its image" 0 'image: registry.example/tandem:1$' '' manifests --image registry.example/tandem:1
check "failures are ignored" 0 'failurePolicy: Ignore' '' manifests --only webhooks
check "its own namespace is exempt" 0 'operator: NotIn' '' manifests --only webhooks
is "definitions" "CustomResourceDefinition CustomResourceDefinition CustomResourceDefinition CustomResourceDefinition " "$(kinds --only crds)"
is "webhooks" "MutatingWebhookConfiguration ValidatingWebhookConfiguration " "$(kinds --only webhooks)"
is "deployment" "Deployment PodDisruptionBudget NetworkPolicy Service " "$(kinds --only deployment)"
is "rights of one" "Namespace ServiceAccount ClusterRole ClusterRoleBinding Role RoleBinding " "$(kinds --only rbac --controllers recommender)"
is "a controller alone has an account of its own" "tandem-updater" "$("$tandem" manifests --only rbac --controllers updater | sed -n '/^kind: ServiceAccount/,/^---/s/^  name: //p')"
is "and its pods are told from others by their labels" 7 "$("$tandem" manifests --only deployment --image a --controllers updater | grep -c 'app.kubernetes.io/component: updater')"
is "the namespace is left to the others" 0 "$("$tandem" manifests --uninstall --controllers updater | grep -c '^kind: Namespace$')"
# patches ARGS...: how many rules allow to patch pods, or workloads, wherever they are
patches() { "$tandem" manifests --only rbac "$@" | python3 -c '
import sys, yaml
print(sum("patch" in rule["verbs"] and bool({"pods", "deployments", "statefulsets"} & set(rule["resources"])) for item in yaml.safe_load_all(sys.stdin)
          if item and item["kind"] == "ClusterRole" for rule in item["rules"]))'; }
is "neither pods nor workloads are patched" 0 "$(patches)"
is "pods are where boosts end" 1 "$(patches --feature-gates CPUStartupBoost=true)"
is "and where resizes are noted on them" 1 "$(patches --annotate-resized-pods)"
is "workloads are where Hvpas write templates" 1 "$(patches --template-actuation)"
is "a gate that is off takes its rights along" 0 "$("$tandem" manifests --only rbac --controllers hvpa --feature-gates Hvpa=false | grep -cE 'pods/|/scale')"
check "the program is told the gates" 0 '[-] --feature-gates=CPUStartupBoost=true$' '' manifests --only deployment --image a --feature-gates CPUStartupBoost=true
check "and not to patch pods" 0 '[-] --annotate-resized-pods=false$' '' manifests --only deployment --image a
check "a gate that is none" 2 '' "^tandem: manifests: --feature-gates: 'Boost': unknown gate" manifests --feature-gates Boost=true
is "whatever was granted is removed" 4 "$("$tandem" manifests --uninstall | grep -cE '^  name: tandem-(hvpa-templates|updater-annotate)$')"
is "without a webhook" "Deployment PodDisruptionBudget NetworkPolicy " "$(kinds --only deployment --controllers recommender)"
is "two parts" "MutatingWebhookConfiguration ValidatingWebhookConfiguration Deployment PodDisruptionBudget NetworkPolicy Service " "$(kinds --only webhooks,deployment)"
is "one that only recommends may not touch pods" 0 "$("$tandem" manifests --only rbac --controllers recommender | grep -cE 'pods/|secrets|webhook')"

# Names of its own: nothing is upstream's, and all of it in its namespace but the leases, which every installation must see.
is "nothing has a name of upstream's, but what is only read" "verbs: - get " \
    "$(grep -A2 -E -- '- vpa-(recommender-lease|updater|admission-controller)$' "$work/all.yaml" | grep -v -- '- vpa-\|^--' | sed 's/^ *//' | sort -ru | tr '\n' ' ')"
is "nor another" "verbs: - get " "$(grep -A2 -E 'vpa-webhook' "$work/all.yaml" | grep -v 'vpa-webhook\|^--' | sed 's/^ *//' | sort -ru | tr '\n' ' ')"
is "its webhook configurations" "2" "$(grep -c '^  name: tandem-webhook-config$' "$work/all.yaml")"
is "its Service" "1" "$(grep -c '^  name: tandem-webhook$' "$work/all.yaml")"
is "its namespace" "  name: tandem-system" "$(sed -n '/^kind: Namespace/,/^---/s/^  name:.*/&/p' "$work/all.yaml")"
is "only leases are elsewhere" "- leases" \
    "$(awk '/^---/ {held = ""} /^kind: Role$/ {held = 1} held && /namespace: kube-system/ {show = 1} /^---/ {show = 0} show && /resources:/ {getline; print $1 " " $2}' "$work/all.yaml" | sort -u)"
is "another namespace" 0 "$("$tandem" manifests --image a --namespace scaling | grep -c 'tandem-system')"
is "one that is there is not made" 0 "$("$tandem" manifests --image a --namespace kube-system | grep -c '^kind: Namespace$')"
is "upstream's are taken over when that is said" "vpa-admission-controller vpa-recommender-lease vpa-updater vpa-webhook vpa-webhook-config" \
    "$("$tandem" manifests --image a --replace-upstream | grep -oE '(^|[ /])vpa-[a-z-]+' | tr -d ' ' | sort -u | tr '\n' ' ' | sed 's/ $//')"
is "and its registration is left to the program" "ValidatingWebhookConfiguration " "$(kinds --only webhooks --replace-upstream)"
check "which is told" 0 '[-] --replace-upstream$' '' manifests --only deployment --image a --replace-upstream
is "with upstream's updater it renews the lease that one looks at" "vpa-admission-controller" \
    "$("$tandem" manifests --only rbac --controllers recommender,admission | grep -B1 -A4 'vpa-admission-controller' | grep -A3 -- '- vpa' | grep -q patch && echo vpa-admission-controller)"
is "CRDs of VPA that others installed" "CustomResourceDefinition CustomResourceDefinition " "$(kinds --only crds --skip-vpa-crds)"

is "what is installed is removed" "$(sed -n 's/^kind: //p' "$work/all.yaml" | sort | uniq | tr '\n' ' ')" \
    "$("$tandem" manifests --uninstall --with-crds | sed -n 's/^kind: //p' | grep -vE '^(Lease|Secret)$' | sort | uniq | tr '\n' ' ')"
is "but for the CRDs" 0 "$(kinds --uninstall | grep -c CustomResourceDefinition)"
check "which is said" 0 '^# The CustomResourceDefinitions stay, ' '' manifests --uninstall
check "to ask for nothing" 2 '' '^tandem: manifests: --only crds --uninstall: deletes every VPA ' manifests --uninstall --only crds
check "CRDs with what is installed" 2 '' '^tandem: manifests: --with-crds: goes with --uninstall only' manifests --with-crds
is "nothing of upstream's is removed" 0 "$("$tandem" manifests --uninstall --replace-upstream | grep -cE 'name: vpa-(recommender|updater|admission|webhook-)')"
is "the namespace goes last" Namespace "$("$tandem" manifests --uninstall | sed -n 's/^kind: //p' | tail -n 1)"
is "but no other" 0 "$("$tandem" manifests --uninstall --namespace scaling | grep -c '^kind: Namespace$')"
is "the program goes first" Deployment "$("$tandem" manifests --uninstall | sed -n 's/^kind: //p' | head -n 1)"
is "with its leases and its certificate" "5 1" "$("$tandem" manifests --uninstall | grep -c '^kind: Lease$') $("$tandem" manifests --uninstall | grep -c '^kind: Secret$')"
check "HPAs of the cluster" 0 '[-] --horizontal=builtin$' '' manifests --horizontal builtin --image a
# The image that was built beside the program, by its digest.
mkdir "$work/built" && cp "$tandem" "$work/built/"
version=$("$tandem" --version | awk 'NR == 1 {print $2}')
echo "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" >"$work/built/tandem-$version.oci.digest"
is "the image beside the program" "        image: tandem@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
    "$("$work/built/tandem" manifests --only deployment | grep image:)"
check "a part that is none" 2 '' "^tandem: manifests: --only: 'crd': must be one of crds, rbac, " manifests --only crd
check "a namespace that is none" 2 '' "^tandem: manifests: --namespace: 'Scaling': must be a lower case DNS label" manifests --namespace Scaling
check "without an image" 2 '' "^tandem: manifests: --image: name the container image; 'make image' in the source tree makes one, " manifests
check "shards, each with a replica and one more" 0 'replicas: 9$' '' manifests --only deployment --image a --shards 8
check "which are told" 0 '[-] --shards=8$' '' manifests --only deployment --image a --shards 8
check "too many shards" 2 '' "^tandem: manifests: --shards: '65': must be a number from 1 to 64" manifests --shards 65
check "an image that is none" 2 '' "^tandem: manifests: --image: '': " manifests --image ''
check "a controller that is none" 2 '' "^tandem: manifests: --controllers: 'x': must be one of " manifests --controllers x
check "an unknown option" 2 '' '^tandem: manifests: --nope: unknown option' manifests --nope
check "words beside options" 2 '' "^tandem: manifests: 'all': takes options only" manifests all
check "help of the command" 0 '^usage: tandem manifests ' '' manifests --help
finish
