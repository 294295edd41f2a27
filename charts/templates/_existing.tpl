{{/*
Objects in the cluster whose fields no upgrade can change. helm finds them only with access to the cluster: `helm template`
refuses nothing because of them.
*/}}

{{/* A Kubernetes quantity in bytes. Call with text, such as "20Gi", or a number, which helm would print as 2e+10. */}}
{{- define "five.bytes" -}}
{{- $text := ternary (printf "%.0f" (float64 .)) (toString .) (kindIs "float64" .) }}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "Ki" 1024 "M" 1e6 "Mi" 1048576 "G" 1e9 "Gi" 1073741824 "T" 1e12 "Ti" 1099511627776 "P" 1e15 "Pi" 1125899906842624 }}
{{- mulf (regexFind "^[0-9.]+" $text | float64) (get $units (regexFind "[A-Za-z]*$" $text) | default 1) | printf "%.0f" -}}
{{- end }}

{{/* Refusals, one to a line. Call with the root. Without them Kubernetes would refuse an upgrade halfway. */}}
{{- define "five.existing.problems" -}}
{{- $namespace := .Release.Namespace }}
{{- $state := .Values.redis.state.persistence }}
{{- $class := $state.storageClass | default .Values.global.storageClass | default "" }}
{{- $set := ternary dict (lookup "apps/v1" "StatefulSet" $namespace (include "five.componentName" (dict "root" $ "component" "redis-state"))) (empty (include "five.ownsRedis" (dict "root" $ "role" "state"))) }}
{{- range dig "spec" "volumeClaimTemplates" list $set }}
{{- $size := .spec.resources.requests.storage }}
{{- if ne (include "five.bytes" $size) (include "five.bytes" $state.size) }}
redis.state.persistence.size: this release has {{ $size }}, and Kubernetes lets no upgrade change it: leave it at {{ $size }}, and grow the claim itself
{{- end }}
{{- if ne (.spec.storageClassName | default "") $class }}
redis.state.persistence.storageClass: this release has {{ .spec.storageClassName | default "" | quote }}, and Kubernetes lets no upgrade change it
{{- end }}
{{- end }}

{{- if not (or .Values.blobs.url .Values.blobs.existingClaim) }}
{{- with (lookup "v1" "PersistentVolumeClaim" $namespace (include "five.blobsClaimName" .)).spec }}
{{- $class := $.Values.blobs.storageClass | default $.Values.global.storageClass | default .storageClassName }}
{{- if lt (include "five.bytes" $.Values.blobs.size | float64) (include "five.bytes" .resources.requests.storage | float64) }}
blobs.size: claim {{ include "five.blobsClaimName" $ }} has {{ .resources.requests.storage }}, and no volume shrinks
{{- end }}
{{- if ne (sortAlpha .accessModes | join ", ") (sortAlpha $.Values.blobs.accessModes | join ", ") }}
blobs.accessModes: claim {{ include "five.blobsClaimName" $ }} has {{ join ", " .accessModes }}, and Kubernetes lets no claim change them: leave them, or name a claim of your own in blobs.existingClaim, with what is in this one copied over
{{- end }}
{{- if ne (.storageClassName | default "") ($class | default "") }}
blobs.storageClass: claim {{ include "five.blobsClaimName" $ }} has {{ .storageClassName | quote }}, and Kubernetes lets no claim change it
{{- end }}
{{- end }}
{{- end }}
{{- end }}
