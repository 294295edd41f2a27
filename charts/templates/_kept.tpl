{{/*
What an upgrade finds in the cluster and may not change. Found only by a client that can look into the cluster:
`helm template` refuses nothing of this.
*/}}

{{/* A quantity of storage as a number. */}}
{{- define "five.kept.bytes" -}}
{{- $units := dict "" 1 "k" 1e3 "Ki" 1024 "M" 1e6 "Mi" 1048576 "G" 1e9 "Gi" 1073741824 "T" 1e12 "Ti" 1099511627776 "P" 1e15 "Pi" 1125899906842624 }}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[A-Za-z]*$" .) | default 1) | printf "%.0f" -}}
{{- end }}

{{/* Refusals, one to a line. Call with the root. Without them half of an upgrade would be done when Kubernetes refuses. */}}
{{- define "five.kept.problems" -}}
{{- $namespace := .Release.Namespace }}
{{- $state := .Values.redis.state.persistence }}
{{- $class := $state.storageClass | default .Values.global.storageClass | default "" }}
{{- $set := ternary dict (lookup "apps/v1" "StatefulSet" $namespace (include "five.componentName" (dict "root" $ "component" "redis-state"))) (empty (include "five.ownsRedis" (dict "root" $ "role" "state"))) }}
{{- range dig "spec" "volumeClaimTemplates" list $set }}
{{- $size := .spec.resources.requests.storage }}
{{- if ne (include "five.kept.bytes" $size) (include "five.kept.bytes" (toString $state.size)) }}
redis.state.persistence.size: this release has {{ $size }}, and Kubernetes lets no upgrade change it: leave it at {{ $size }}, and grow the claim itself
{{- end }}
{{- if ne (.spec.storageClassName | default "") $class }}
redis.state.persistence.storageClass: this release has {{ .spec.storageClassName | default "" | quote }}, and Kubernetes lets no upgrade change it
{{- end }}
{{- end }}

{{- if not (or .Values.blobs.url .Values.blobs.existingClaim) }}
{{- with (lookup "v1" "PersistentVolumeClaim" $namespace (include "five.blobsClaimName" .)).spec }}
{{- $class := $.Values.blobs.storageClass | default $.Values.global.storageClass | default .storageClassName }}
{{- if lt (include "five.kept.bytes" (toString $.Values.blobs.size) | float64) (include "five.kept.bytes" .resources.requests.storage | float64) }}
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
