{{/*
A pod of `helm test`: a script of files/tests in the controller's image, which has every client and no torch.
Call with (dict "root" $ "name" "rest" "script" "rest_endpoint.py" "args" LIST "seconds" N), and what the script needs:
  user     name of a Redis user: the pod gets its name and password (five.secretEnv);
  token    true: the pod gets the viewer's token of these tests;
  config   list of "grpc" and "redis": the pod gets the run's configuration and the certificates of these connections.
*/}}
{{- define "five.test" -}}
{{- $root := .root -}}
{{- $test := dict "root" $root "component" "test" "values" (dict "tolerations" list "podLabels" dict "podAnnotations" dict "extraEnv" list
    "extraVolumes" $root.Values.tests.extraVolumes "extraVolumeMounts" $root.Values.tests.extraVolumeMounts) -}}
{{- $controller := dict "root" $root "component" "controller" "values" $root.Values.controller -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "five.componentName" $test }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- merge (include "five.extraPodLabels" $test | fromYaml) (include "five.labels" $test | fromYaml) | toYaml | nindent 4 }}
  annotations:
    {{- with include "five.podAnnotations" $test }}
    {{- . | nindent 4 }}
    {{- end }}
    helm.sh/hook: test
    helm.sh/hook-weight: {{ .weight | default 0 | quote }}
    # Not when it succeeds: `helm test --logs` asks for the logs after that.
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  restartPolicy: Never
  activeDeadlineSeconds: {{ add .seconds 120 }}
  serviceAccountName: {{ include "five.serviceAccountName" $test }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $root.Values.global.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "five.priorityClassName" $test }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with include "five.schedulingConstraints" $test }}
  {{- . | nindent 2 }}
  {{- end }}
  securityContext:
    {{- include "five.podSecurityContext" $test | nindent 4 }}
  containers:
    - name: test
      image: {{ include "five.image" $controller }}
      imagePullPolicy: {{ $root.Values.global.image.pullPolicy }}
      command: [tini, --, python, /etc/five/tests/{{ .script }}]
      args:
        {{- range .args }}
        - {{ . | quote }}
        {{- end }}
      {{- $extra := include "five.extraEnv" $test | trim }}
      {{- if or .user .token $extra }}
      env:
        {{- with .user }}
        {{- include "five.secretEnv" (dict "root" $root "user" .) | trim | nindent 8 }}
        {{- end }}
        {{- if .token }}
        - name: FIVE_VIEWER_TOKEN_FILE
          value: /etc/five/viewer/token
        {{- end }}
        {{- with $extra }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- end }}
      resources:
        requests: {cpu: 50m, memory: 128Mi}
        limits: {cpu: "1", memory: 512Mi}
      securityContext:
        {{- include "five.containerSecurityContext" $test | nindent 8 }}
      volumeMounts:
        - name: scripts
          mountPath: /etc/five/tests
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- with .user }}
        {{- include "five.redisLogin.mount" (dict "root" $root "user" .) | trim | nindent 8 }}
        {{- end }}
        {{- if .token }}
        - name: viewer
          mountPath: /etc/five/viewer
          readOnly: true
        {{- end }}
        {{- if .config }}
        - name: run
          mountPath: /etc/five/run.yaml
          subPath: run.yaml
          readOnly: true
        {{- with include "five.tls.mounts" (dict "root" $root "of" .config) | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- end }}
        {{- with include "five.extraVolumeMounts" $test }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    - name: scripts
      configMap:
        name: {{ include "five.componentName" $test }}
    - name: tmp
      emptyDir:
        sizeLimit: 64Mi
    {{- with .user }}
    {{- include "five.redisLogin.volume" (dict "root" $root "user" .) | trim | nindent 4 }}
    {{- end }}
    {{- if .token }}
    - name: viewer
      secret:
        secretName: {{ include "five.secretName" (dict "root" $root "at" "test") }}
        defaultMode: 0440
        items:
          - key: token
            path: token
    {{- end }}
    {{- if .config }}
    - name: run
      configMap:
        name: {{ include "five.fullname" $root }}-run
    {{- with include "five.tls.volumes" (dict "root" $root "of" .config) | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- with include "five.extraVolumes" $test }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}
