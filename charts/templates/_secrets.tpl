{{/*
Secrets. Each is named in the values (existingSecret), exists under the chart's name (secrets.create false), or is generated
at the first install and reused by upgrades. files/users-state.acl and files/users-params.acl declare the users of each Redis
and their rights.
*/}}

{{/* Who calls services, as a JSON array. Each has a secret (libs/rapid/rpc/access.py). */}}
{{- define "five.callers" -}}
{{- list "controller" "evaluator" "play" "rollout" | toJson -}}
{{- end }}

{{/* Name of a Secret. Call with (dict "root" $ "at" "tokens"), or "redis" or "callers" and "user"; see secrets in the values. */}}
{{- define "five.secretName" -}}
{{- $of := index .root.Values.secrets .at }}
{{- $name := get (dict "tokens" "api-tokens" "operator" "operator-token" "test" "test-token") .at }}
{{- if .user }}
{{- $of = index $of .user }}
{{- $name = ternary "callers" (printf "%s-%s" (ternary "caller" "redis" (eq .at "callers")) .user) (eq .user "hashes") }}
{{- end }}
{{- dig "existingSecret" "" ($of | default dict) | default (printf "%s-%s" (include "five.fullname" .root) $name) -}}
{{- end }}

{{/* "true" where the chart writes that Secret. Call with the same. */}}
{{- define "five.secretMade" -}}
{{- $of := index .root.Values.secrets .at }}
{{- if .user }}
{{- $of = index $of .user }}
{{- end }}
{{- if and .root.Values.secrets.create (not (dig "existingSecret" "" ($of | default dict))) }}true{{ end }}
{{- end }}

{{/* Who has a user in a Redis, as a JSON array. Call with (dict "root" $ "role" "state"). */}}
{{- define "five.redisUsers" -}}
{{- $found := list }}
{{- range .root.Files.Lines (printf "files/users-%s.acl" .role) }}
{{- if and (hasPrefix "user " .) (not (hasPrefix "user default " .)) }}
{{- $found = append $found (index (splitList " " .) 1) }}
{{- end }}
{{- end }}
{{- toJson $found -}}
{{- end }}

{{/* The Redis in which a component has a user, as a JSON array of "state" and "params". Call with (dict "root" $ "component" C). */}}
{{- define "five.redisRoles" -}}
{{- $found := list }}
{{- range $role := list "state" "params" }}
{{- if has $.component (include "five.redisUsers" (dict "root" $.root "role" $role) | fromJsonArray) }}
{{- $found = append $found $role }}
{{- end }}
{{- end }}
{{- toJson $found -}}
{{- end }}

{{/*
One entry of a Secret's data: the value that the cluster has, else a new one.
Only a client with a cluster can look; `helm template` writes new values every time, see the README.
Call with (dict "root" $ "secret" NAME "key" KEY).
*/}}
{{- define "five.secrets.valueOrNew" -}}
{{- $data := (lookup "v1" "Secret" .root.Release.Namespace .secret).data | default dict -}}
{{- get $data .key | default (randAlphaNum 48 | b64enc) -}}
{{- end }}

{{/* Data of a Secret in the cluster, as JSON; {} if there is none. Call with (dict "root" $ "secret" NAME). */}}
{{- define "five.secrets.found" -}}
{{- (lookup "v1" "Secret" .root.Release.Namespace .secret).data | default dict | toJson -}}
{{- end }}

{{/* Refusals, one to a line. Call with the root. Found only by a client that can look into the cluster. */}}
{{- define "five.secrets.problems" -}}
{{- with .Values.secrets.redis.existingSecret }}
secrets.redis.existingSecret: a value of chart 0.1.0. Each user of Redis has a Secret now: name them in secrets.redis.controller.existingSecret and so on, or leave them out
{{- end }}
{{- with dig "service" "existingSecret" "" .Values.secrets }}
secrets.service.existingSecret: a value of chart 0.1.0, whose token all services shared. Each caller has a Secret now: name them in secrets.callers.controller.existingSecret and so on, or leave them out
{{- end }}
{{- $asked := list (list "secrets.tokens" (dict "root" $ "at" "tokens") (list "tokens.json")) }}
{{- if .Values.tests.enabled }}
{{- $asked = append $asked (list "secrets.test" (dict "root" $ "at" "test") (list "token")) }}
{{- if and (include "five.secretMade" (dict "root" $ "at" "test")) (not (include "five.secretMade" (dict "root" $ "at" "tokens"))) }}
secrets.tokens.existingSecret: `helm test` needs a token of its own among them. Put a viewer's token into a Secret and name it in secrets.test.existingSecret, or set tests.enabled to false
{{- end }}
{{- end }}
{{- range $user := include "five.redisUsers" (dict "root" $ "role" "state") | fromJsonArray }}
{{- $keys := list }}
{{- range $role := include "five.redisRoles" (dict "root" $ "component" $user) | fromJsonArray }}
{{- $keys = append $keys (printf "%s-password" $role) }}
{{- end }}
{{- $asked = append $asked (list (printf "secrets.redis.%s" $user) (dict "root" $ "at" "redis" "user" $user) $keys) }}
{{- end }}
{{- $users := dict "root" $ "at" "redis" "user" "users" }}
{{- $asked = append $asked (list "secrets.redis.users" $users (list "state.acl" "params.acl")) }}
{{- range $caller := include "five.callers" $ | fromJsonArray }}
{{- $asked = append $asked (list (printf "secrets.callers.%s" $caller) (dict "root" $ "at" "callers" "user" $caller) (list "secret")) }}
{{- end }}
{{- $hashes := dict "root" $ "at" "callers" "user" "hashes" }}
{{- $asked = append $asked (list "secrets.callers.hashes" $hashes (list "callers.json")) }}
{{- range $asked }}
{{- $value := first . }}
{{- $secret := include "five.secretName" (index . 1) }}
{{- if not (include "five.secretMade" (index . 1)) }}
{{- $data := include "five.secrets.found" (dict "root" $ "secret" $secret) | fromJson }}
{{- if $data }}
{{- range last . }}
{{- if not (hasKey $data .) }}
{{ printf "%s.existingSecret: Secret %s has no key %s" $value $secret . }}
{{- end }}
{{- end }}
{{- else if and (include "five.secretMade" $hashes) (hasPrefix "secrets.callers." $value) }}
{{ printf "%s.existingSecret: Secret %s cannot be looked at from here, so that servers would not know the caller. Give secrets.callers.hashes.existingSecret too: the README says how it is made" $value $secret }}
{{- else if and (include "five.secretMade" $users) (hasPrefix "secrets.redis." $value) }}
{{ printf "%s.existingSecret: Secret %s cannot be looked at from here, so that Redis would not know the password. Give secrets.redis.users.existingSecret too: the README says how it is made" $value $secret }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
