{{/*
Secrets. Each is either given (existingSecret) or generated at the first install and kept through every upgrade.
*/}}

{{/* Secret with the tokens: keys "token" (operator, and gRPC between the services) and "viewer-token". */}}
{{- define "five.tokenSecretName" -}}
{{- .Values.secrets.tokens.existingSecret | default (printf "%s-tokens" (include "five.fullname" .)) -}}
{{- end }}

{{/* Secret with the passwords of Redis: keys "state-password" and "params-password". */}}
{{- define "five.redisSecretName" -}}
{{- .Values.secrets.redis.existingSecret | default (printf "%s-redis" (include "five.fullname" .)) -}}
{{- end }}

{{/*
One entry of a Secret's data: the value that the cluster has, else a new one.
Only a client with a cluster can look; `helm template` writes new values every time, see the README.
Call with (dict "root" $ "secret" NAME "key" KEY).
*/}}
{{- define "five.secrets.kept" -}}
{{- $data := (lookup "v1" "Secret" .root.Release.Namespace .secret).data | default dict -}}
{{- get $data .key | default (randAlphaNum 48 | b64enc) -}}
{{- end }}
