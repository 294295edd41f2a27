{{/*
Environment variables of a component's containers. Most helpers take a component; see _names.tpl.
*/}}

{{/* All variables: the files with the secrets, then what the values add. */}}
{{- define "five.env" -}}
{{- if include "five.calls" . }}
- name: FIVE_CALLER_SECRET_FILE
  value: /etc/five/caller/secret
{{- end }}
{{- if include "five.serves" . }}
- name: FIVE_CALLERS_FILE
  value: /etc/five/callers/callers.json
{{- end }}
{{ include "five.secretEnv" (dict "root" .root "user" .component) | trim }}
{{- if eq .component "controller" }}
- name: FIVE_TOKENS_FILE
  value: /etc/five/tokens/tokens.json
{{- end }}
{{- include "five.extraEnv" . }}
{{- end }}

{{/* Environment that the values add: a component's own variable replaces the global one of its name. */}}
{{- define "five.extraEnv" -}}
{{- $given := concat .root.Values.global.extraEnv .values.extraEnv }}
{{- $last := dict }}
{{- range $i, $one := $given }}
{{- $_ := set $last $one.name $i }}
{{- end }}
{{- range $i, $one := $given }}
{{- if eq $i (get $last $one.name) }}
{{ toYaml (list $one) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Refusals, one to a line. Call with the root. Helm 4 takes no variable twice, and stops after half of the objects. */}}
{{- define "five.env.problems" -}}
{{- $own := list "FIVE_TOKEN" "FIVE_TOKEN_FILE" "FIVE_CALLER_SECRET_FILE" "FIVE_CALLERS_FILE" "FIVE_TOKENS_FILE" "FIVE_VIEWER_TOKEN_FILE" "FIVE_STATE_USER" "FIVE_STATE_PASSWORD" "FIVE_STATE_PASSWORD_FILE" "FIVE_PARAMS_USER" "FIVE_PARAMS_PASSWORD" "FIVE_PARAMS_PASSWORD_FILE" "POD_NAME" "POD_IP" }}
{{- $lists := dict "global" .Values.global.extraEnv }}
{{- range list "rollout" "dotaEnv" "inference" "optimizer" "controller" "opponents" "evaluator" "play" "dotaservice" "backup" }}
{{- $_ := set $lists . (index $.Values .).extraEnv }}
{{- end }}
{{- range $name, $pool := .Values.inference.pools }}
{{- $_ := set $lists (printf "inference.pools.%s" $name) (dig "extraEnv" list ($pool | default dict)) }}
{{- end }}
{{- range $path, $variables := $lists }}
{{- range $variables }}
{{- if has .name $own }}
{{ printf "%s.extraEnv: %s is the chart's own" $path .name }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Variables with a user's name and its password's file, for each Redis in which it exists. An external Redis without users gets
the password alone. Call with (dict "root" $ "user" NAME).
*/}}
{{- define "five.secretEnv" -}}
{{- range $role := include "five.redisRoles" (dict "root" .root "component" .user) | fromJsonArray }}
{{- $external := (index $.root.Values.redis $role).external }}
{{- if or (not $external.host) $external.users }}
- name: FIVE_{{ upper $role }}_USER
  value: {{ $.user }}
{{- end }}
- name: FIVE_{{ upper $role }}_PASSWORD_FILE
  value: /etc/five/redis/{{ $role }}-password
{{- end }}
{{- end }}
