{{/*
TLS of gRPC and of Redis, either from cert-manager or from a Secret that is there (tls.crt, tls.key, ca.crt).
*/}}

{{/* Secret with the certificate of the gRPC services. */}}
{{- define "five.tls.grpcSecretName" -}}
{{- .Values.tls.grpc.existingSecret | default (printf "%s-grpc-tls" (include "five.fullname" .)) -}}
{{- end }}

{{/* Secret with the certificate of both Redis servers. */}}
{{- define "five.tls.redisSecretName" -}}
{{- .Values.tls.redis.existingSecret | default (printf "%s-redis-tls" (include "five.fullname" .)) -}}
{{- end }}

{{/* "true" where the pods of this release's Redis serve TLS. An external Redis has certificates of its own. */}}
{{- define "five.tls.redisServed" -}}
{{- if and .Values.tls.redis.enabled (or (not .Values.redis.state.external.host) (not .Values.redis.params.external.host)) }}true{{ end -}}
{{- end }}

{{/* Every name by which a Service is dialled. Call with (dict "root" $ "name" SERVICE "headless" BOOL). */}}
{{- define "five.tls.dnsNames" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $domain := .root.Values.global.clusterDomain -}}
- {{ .name | quote }}
- {{ printf "%s.%s" .name $namespace | quote }}
- {{ printf "%s.%s.svc" .name $namespace | quote }}
- {{ printf "%s.%s.svc.%s" .name $namespace $domain | quote }}
{{- if .headless }}
{{- /* A wildcard stands for one label, and clients take it only above a name of two labels or more. */}}
- {{ printf "*.%s.%s.svc" .name $namespace | quote }}
- {{ printf "*.%s.%s.svc.%s" .name $namespace $domain | quote }}
{{- end }}
{{- end }}

{{/* What both certificates are issued with. */}}
{{- define "five.tls.issued" -}}
duration: {{ .Values.tls.certManager.duration }}
renewBefore: {{ .Values.tls.certManager.renewBefore }}
privateKey:
  algorithm: ECDSA
  size: 256
  rotationPolicy: Always
issuerRef:
  {{- toYaml .Values.tls.certManager.issuerRef | nindent 2 }}
{{- end }}

{{/* Volumes of a service's pod. Call with the root. */}}
{{- define "five.tls.volumes" -}}
{{- if .Values.tls.grpc.enabled }}
- name: grpc-tls
  secret:
    secretName: {{ include "five.tls.grpcSecretName" . }}
    defaultMode: 0440
{{- end }}
{{- if .Values.tls.redis.enabled }}
- name: redis-ca
  secret:
    secretName: {{ include "five.tls.redisSecretName" . }}
    defaultMode: 0440
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- end }}

{{/* Where a service's containers find them. Call with the root. */}}
{{- define "five.tls.mounts" -}}
{{- if .Values.tls.grpc.enabled }}
- name: grpc-tls
  mountPath: /etc/five/tls
  readOnly: true
{{- end }}
{{- if .Values.tls.redis.enabled }}
- name: redis-ca
  mountPath: /etc/five/redis-tls
  readOnly: true
{{- end }}
{{- end }}

{{/* What the run's configuration says of it, as YAML to be merged over the rest. Call with the root. */}}
{{- define "five.tls.config" -}}
{{- if .Values.tls.grpc.enabled }}
rpc:
  tls:
    authority: /etc/five/tls/ca.crt
    certificate: /etc/five/tls/tls.crt
    key: /etc/five/tls/tls.key
    require_client_certificate: {{ .Values.tls.grpc.requireClientCertificate }}
{{- end }}
{{- if .Values.tls.redis.enabled }}
store:
  tls_authority: /etc/five/redis-tls/ca.crt
{{- end }}
{{- end }}

{{/* Volume, mount and arguments of a Redis server. Call with the root. */}}
{{- define "five.tls.redisServerVolumes" -}}
{{- if .Values.tls.redis.enabled }}
- name: tls
  secret:
    secretName: {{ include "five.tls.redisSecretName" . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "five.tls.redisServerMounts" -}}
{{- if .Values.tls.redis.enabled }}
- name: tls
  mountPath: /etc/redis/tls
  readOnly: true
{{- end }}
{{- end }}

{{/* Lines of redis.conf; the port with TLS takes the place of the one without. */}}
{{- define "five.tls.redisServerConfig" -}}
{{- if .Values.tls.redis.enabled -}}
port 0
tls-port 6379
tls-cert-file /etc/redis/tls/tls.crt
tls-key-file /etc/redis/tls/tls.key
tls-ca-cert-file /etc/redis/tls/ca.crt
tls-auth-clients no
{{- else -}}
port 6379
{{- end }}
{{- end }}

{{/* Arguments of redis-cli in probes. */}}
{{- define "five.tls.redisCli" -}}
{{- if .Values.tls.redis.enabled }}--tls --cacert /etc/redis/tls/ca.crt{{ end -}}
{{- end }}

{{/* Refusals. Call with the root. */}}
{{- define "five.tls.validate" -}}
{{- $issuer := .Values.tls.certManager.issuerRef.name -}}
{{- range $what := list "grpc" "redis" }}
{{- $tls := index $.Values.tls $what }}
{{- if and $tls.enabled (not $tls.existingSecret) (not $issuer) }}
{{- fail (printf "tls.%s.enabled: there is no certificate. Give tls.%s.existingSecret (keys tls.crt, tls.key, ca.crt), or tls.certManager.issuerRef.name to have cert-manager issue one." $what $what) }}
{{- end }}
{{- end }}
{{- end }}
