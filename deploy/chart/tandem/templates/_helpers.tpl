{{- /* A controller that is installed alone has an account and names of its own. */ -}}
{{- define "tandem.name" -}}
tandem{{ if eq (len .Values.controllers) 1 }}-{{ index .Values.controllers 0 }}{{ end }}
{{- end }}

{{- define "tandem.labels" -}}
app.kubernetes.io/name: tandem
{{- if eq (len .Values.controllers) 1 }}
app.kubernetes.io/component: {{ index .Values.controllers 0 }}
{{- end }}
{{- end }}

{{- /* Are pods patched? Boosts at the start are annotations too. */ -}}
{{- define "tandem.annotates" -}}
{{ or .Values.annotateResizedPods (regexMatch "(CPUStartupBoost|AllAlpha) *= *true" .Values.featureGates) }}
{{- end }}

{{- define "tandem.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "tandem.service" -}}
{{ ternary "vpa-webhook" "tandem-webhook" .Values.replaceUpstream }}
{{- end }}

{{- /* The controllers in the order of the program; the shadow stands alone. */ -}}
{{- define "tandem.controllers" -}}
{{- $names := ternary (list "shadow") list .Values.shadow -}}
{{- range list "recommender" "updater" "admission" "horizontal" "hvpa" -}}
{{- if and (has . $.Values.controllers) (not $.Values.shadow) }}{{ $names = append $names . }}{{ end -}}
{{- end -}}
{{ join "," $names }}
{{- end }}

{{- /* Objects of a file, as `tandem manifests` prints them, one a document. */ -}}
{{- define "tandem.documents" -}}
{{- range splitList "\n---\n" (printf "\n%s" .) -}}
{{- $object := fromYaml . -}}
{{- if $object.kind }}
---
{{ toYaml $object }}
{{ end -}}
{{- end -}}
{{- end }}
