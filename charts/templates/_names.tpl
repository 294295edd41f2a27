{{/*
Names, labels and images.

Most helpers take a component: (dict "root" $ "component" "rollout"), with
  values  the component's section of the values, where it is not the one that the component's name stands for;
  pool    the pool, for inference, which may run more than one.
*/}}

{{- define "five.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* Prefix of every object's name: the release's, which is enough for one that is called five. At most 40 characters. */}}
{{- define "five.fullname" -}}
{{- include "five.wholeName" . | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The prefix before it is cut. */}}
{{- define "five.wholeName" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains (include "five.name" .) .Release.Name }}
{{- .Release.Name }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "five.name" .) }}
{{- end }}
{{- end }}

{{/*
Refusals, one to a line. Call with the root. Two releases whose names differ after 40 characters would share every object.
helm allows release names that begin with a digit or have dots, which names of Services and runs cannot.
*/}}
{{- define "five.names.problems" -}}
{{- $whole := include "five.wholeName" . }}
{{- if gt (len $whole) 40 }}
{{ printf "fullnameOverride: the objects' prefix %q has %d characters, at most 40 are allowed, and a cut one could be another release's. For a new release set a short one; a release that is installed already keeps its objects with fullnameOverride=%s" $whole (len $whole) (include "five.fullname" .) }}
{{- end }}
{{- $prefix := include "five.fullname" . }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $prefix) }}
{{ printf "fullnameOverride: the objects' prefix %q is invalid: names of Services begin with a letter and have only lowercase letters, digits and \"-\". Give the release another name, or set fullnameOverride" $prefix }}
{{- end }}
{{- $run := include "five.runName" . }}
{{- if not (regexMatch "^[a-z0-9][a-z0-9-]{0,62}$" $run) }}
{{ printf "run.name: the run would have the release's name %q, and only lowercase letters, digits and \"-\" are allowed: set run.name" $run }}
{{- end }}
{{- end }}

{{/* Name of a component's objects; a pool beside the default one carries its own. 63 characters at the longest. */}}
{{- define "five.componentName" -}}
{{- printf "%s-%s" (include "five.fullname" .root) .component }}
{{- if and .pool (ne .pool "default") }}-{{ .pool }}{{ end }}
{{- end }}

{{/* What selectors match. It never changes during a release's life: the API server would refuse the upgrade. */}}
{{- define "five.selectorLabels" -}}
app.kubernetes.io/name: {{ include "five.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
five/inference-pool: {{ . | quote }}
{{- end }}
{{- end }}

{{/*
Labels of pods. Without the chart's version: a new chart that changes nothing of a pod leaves it running. For the same
reason Redis has its own version and not the platform's: an upgrade would restart it under everybody.
*/}}
{{- define "five.podLabels" -}}
{{ include "five.selectorLabels" . }}
{{- $version := ternary .root.Values.redis.image.tag .root.Chart.AppVersion (hasPrefix "redis-" .component) }}
app.kubernetes.io/version: {{ $version | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/part-of: five
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* What the values add to them; never what a selector matches. */}}
{{- define "five.extraPodLabels" -}}
{{- $own := include "five.podLabels" . | fromYaml }}
{{- $extra := dict }}
{{- range $name, $value := merge dict .values.podLabels .root.Values.global.podLabels }}
{{- if not (hasKey $own $name) }}{{ $_ := set $extra $name $value }}{{ end }}
{{- end }}
{{- with $extra }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Labels of every other object, with those of the values that take none of the chart's own place. */}}
{{- define "five.labels" -}}
{{ include "five.podLabels" . }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- $own := include "five.podLabels" . | fromYaml }}
{{- range $name, $value := include "five.ofObjects" (dict "of" . "what" "labels") | fromYaml }}
{{- if not (or (hasKey $own $name) (eq $name "helm.sh/chart")) }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Labels of an object for Prometheus or Grafana: those by which they select it replace global ones. Call with
(dict "root" $ "selected" LABELS).
*/}}
{{- define "five.monitoringLabels" -}}
{{- merge dict .selected (include "five.labels" (dict "root" .root "component" "monitoring") | fromYaml) | toYaml }}
{{- end }}

{{/* Annotations of a component's workload and Service, as lines; empty without any. */}}
{{- define "five.annotations" -}}
{{- with include "five.ofObjects" (dict "of" . "what" "annotations") | fromYaml }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/*
What the values add to the objects themselves: `what` (labels, annotations) of a component or its pool, over the global ones.
*/}}
{{- define "five.ofObjects" -}}
{{- $values := .of.root.Values }}
{{- $at := splitList "-" .of.component }}
{{- $own := ternary (index $values.redis (last $at)) (index $values (.of.component | camelcase | untitle)) (eq (first $at) "redis") }}
{{- with .of.pool }}
{{- $own = get (include "five.inferencePools" $.of.root | fromYaml) . }}
{{- end }}
{{- $found := deepCopy (index $values.global .what) }}
{{- if kindIs "map" $own }}{{ $found = merge (deepCopy (index $own .what | default dict)) $found }}{{ end }}
{{- toYaml $found }}
{{- end }}

{{/* Image of a component: [registry/][prefix/]component:tag, or @digest where one is given. */}}
{{- define "five.image" -}}
{{- $global := .root.Values.global.image }}
{{- $own := (index .root.Values (.component | camelcase | untitle)).image }}
{{- $repository := $own.repository | default (list $global.repositoryPrefix .component | compact | join "/") }}
{{- $name := list $global.registry $repository | compact | join "/" }}
{{- if $own.digest }}
{{- printf "%s@%s" $name $own.digest }}
{{- else }}
{{- $values := .values | default (index .root.Values (.component | camelcase | untitle)) }}
{{- $cuda := and (gt (int (dig "gpu" "count" 0 $values)) 0) (not $own.repository) }}
{{- $tag := $global.tag | default .root.Chart.AppVersion }}
{{- printf "%s:%s" $name ($own.tag | default (ternary (printf "%s-cuda" $tag) $tag $cuda)) }}
{{- end }}
{{- end }}

{{/* Image of both Redis servers. */}}
{{- define "five.redisImage" -}}
{{- with .Values.redis.image }}
{{- $name := list .registry .repository | compact | join "/" }}
{{- if .digest }}
{{- printf "%s@%s" $name .digest }}
{{- else }}
{{- printf "%s:%s" $name .tag }}
{{- end }}
{{- end }}
{{- end }}

{{/* Service account of a component. All share one that may do nothing, but for the controller with its autoscaler. */}}
{{- define "five.serviceAccountName" -}}
{{- $account := .root.Values.global.serviceAccount }}
{{- $name := include "five.fullname" .root }}
{{- if eq .component "controller" }}
{{- $account = .root.Values.controller.serviceAccount }}
{{- $name = include "five.componentName" . }}
{{- end }}
{{- if $account.create }}
{{- $account.name | default $name }}
{{- else }}
{{- $account.name | default "default" }}
{{- end }}
{{- end }}
