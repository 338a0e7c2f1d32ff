// Package k8s decodes the manifests in configs/ strictly into the types of
// Kubernetes: a field that is misspelt, or stands in the wrong place, is an
// error here and would be ignored or refused by a cluster. Kustomizations are
// built as kubectl does it.
package k8s

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const configs = "../../../configs/"

// decode reads YAML into the type its kind names; an unknown or repeated field
// is an error.
func decode(data []byte) (any, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	kinds := map[string]any{
		"v1/Namespace":                        new(core.Namespace),
		"v1/Service":                          new(core.Service),
		"v1/ConfigMap":                        new(core.ConfigMap),
		"apps/v1/DaemonSet":                   new(apps.DaemonSet),
		"monitoring.coreos.com/v1/PodMonitor": new(monitoring.PodMonitor),
	}
	into, ok := kinds[head.APIVersion+"/"+head.Kind]
	if !ok {
		return nil, fmt.Errorf("no type for %s %s", head.APIVersion, head.Kind)
	}
	return into, yaml.UnmarshalStrict(data, into)
}

// build is `kubectl kustomize DIR` with components added.
func build(t *testing.T, overlay string, components ...string) []any {
	t.Helper()
	dir := configs + "kubernetes/overlays/" + overlay
	if len(components) > 0 {
		dir = withComponents(t, overlay, components)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("kustomize %s %v: %v", overlay, components, err)
	}
	return decodeAll(t, built)
}

// withComponents writes a kustomization that adds components to an overlay,
// as the comment in the overlay tells.
func withComponents(t *testing.T, overlay string, components []string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(configs+"kubernetes")); err != nil {
		t.Fatal(err)
	}
	file := path.Join(dir, "overlays", overlay, "kustomization.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := strings.Replace(string(text), "# components:", "components:", 1)
	for _, c := range components {
		before := s
		if s = strings.Replace(s, "#   - ../../components/"+c, "  - ../../components/"+c, 1); s == before {
			t.Fatalf("overlay %s does not offer component %s", overlay, c)
		}
	}
	if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return path.Join(dir, "overlays", overlay)
}

func decodeAll(t *testing.T, built resmap.ResMap) []any {
	t.Helper()
	var objects []any
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, err := decode(text)
		if err != nil {
			t.Errorf("%s: %v", r.CurId(), err)
			continue
		}
		objects = append(objects, object)
	}
	return objects
}

// find returns the only object of a type.
func find[T any](t *testing.T, objects []any) T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if v, ok := o.(T); ok {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want one", len(found), *new(T))
	}
	return found[0]
}

func TestDaemonSet(t *testing.T) {
	objects := build(t, "daemonset")
	if len(objects) != 4 {
		t.Errorf("%d objects, want namespace, configuration, daemon set and service", len(objects))
	}
	pod := find[*apps.DaemonSet](t, objects).Spec.Template
	configMap := find[*core.ConfigMap](t, objects)
	service := find[*core.Service](t, objects)
	checkContainer(t, "daemonset", pod.Spec.Containers[0], *pod.Spec.SecurityContext)
	checkVolumes(t, "daemonset", pod.Spec.Volumes, configMap.Name)
	checkMounts(t, "daemonset", pod.Spec.Containers[0], pod.Spec.Volumes)
	if pod.Spec.NodeSelector["kubernetes.io/os"] != "linux" || len(pod.Spec.Tolerations) != 1 || pod.Spec.Tolerations[0] != (core.Toleration{Operator: core.TolerationOpExists}) {
		t.Errorf("runs on %v, tolerates %v: RisingWave may be on any Linux node, and on no other", pod.Spec.NodeSelector, pod.Spec.Tolerations)
	}
	if !strings.HasPrefix(configMap.Name, "rwannotate-") {
		t.Errorf("ConfigMap %s: a new configuration would not roll the DaemonSet out", configMap.Name)
	}
	for k, v := range service.Spec.Selector {
		if pod.Labels[k] != v {
			t.Errorf("the Service selects %s=%s, the pods have %v", k, v, pod.Labels)
		}
	}
	if grace := *pod.Spec.TerminationGracePeriodSeconds; grace < 11 {
		t.Errorf("%d s to stop, RWANNOTATE_SHUTDOWN_TIMEOUT is 10 s", grace)
	}
	for _, o := range objects {
		if n, ok := o.(*core.Namespace); !ok && namespaceOf(o) != "rwannotate" || ok && n.Name != "rwannotate" {
			t.Errorf("%T is in namespace %q", o, namespaceOf(o))
		}
	}
}

func namespaceOf(o any) string {
	type object interface{ GetNamespace() string }
	return o.(object).GetNamespace()
}

func TestHostState(t *testing.T) {
	spec := find[*apps.DaemonSet](t, build(t, "daemonset", "host-state")).Spec.Template.Spec
	i := slices.IndexFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == "state" })
	if v := spec.Volumes[i]; v.HostPath == nil || v.EmptyDir != nil {
		t.Errorf("volume state is %+v", v.VolumeSource)
	}
	if *spec.SecurityContext.RunAsUser != 0 || *spec.SecurityContext.RunAsNonRoot {
		t.Error("runs as a user to whom the directory on the node does not belong")
	}
	if caps := spec.Containers[0].SecurityContext.Capabilities; len(caps.Drop) != 1 || caps.Drop[0] != "ALL" {
		t.Errorf("root with capabilities %+v", caps)
	}
}

func TestPodMonitor(t *testing.T) {
	for _, overlay := range []string{"daemonset", "sidecar"} {
		m := find[*monitoring.PodMonitor](t, build(t, overlay, "podmonitor"))
		if port := m.Spec.PodMetricsEndpoints[0].Port; port == nil || *port != "annot-http" {
			t.Errorf("%s: scrapes port %v", overlay, port)
		}
	}
}

func TestSidecarOverlay(t *testing.T) {
	objects := build(t, "sidecar")
	if name := find[*core.ConfigMap](t, objects).Name; name != "rwannotate" {
		t.Errorf("the ConfigMap is called %s; chart values and operator sample mount rwannotate", name)
	}
	if s := find[*core.Service](t, objects); s.Spec.Selector["risingwave/component"] != "meta" {
		t.Errorf("the Service selects %v", s.Spec.Selector)
	}
}

// chartComponent is what a component of the chart's values may hold of what
// we use (chart 0.2.58).
type chartComponent struct {
	ExtraVolumes         []core.Volume    `json:"extraVolumes"`
	AdditionalContainers []core.Container `json:"additionalContainers"`
}

func TestHelmValues(t *testing.T) {
	text, err := os.ReadFile(configs + "helm-values/risingwave-sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Meta       *chartComponent `json:"metaComponent"`
		Compute    *chartComponent `json:"computeComponent"`
		Frontend   *chartComponent `json:"frontendComponent"`
		Compactor  *chartComponent `json:"compactorComponent"`
		Iceberg    *chartComponent `json:"icebergCompactorComponent"`
		Standalone *chartComponent `json:"standalone"`
	}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*chartComponent{
		"meta": values.Meta, "compute": values.Compute, "frontend": values.Frontend, "compactor": values.Compactor,
		"Iceberg compactor": values.Iceberg, "standalone": values.Standalone,
	} {
		if c == nil || len(c.AdditionalContainers) != 1 {
			t.Errorf("%s has no sidecar", name)
			continue
		}
		checkSidecar(t, "chart, "+name, c.AdditionalContainers[0], c.ExtraVolumes)
	}
}

// nodeGroupSpec is what a node group's template of the operator's custom
// resource (v1alpha1) may hold of what we use.
type nodeGroupSpec struct {
	Volumes        []core.Volume    `json:"volumes"`
	InitContainers []core.Container `json:"initContainers"`
}

func TestOperator(t *testing.T) {
	text, err := os.ReadFile(configs + "kubernetes/operator/risingwave.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type nodeGroups struct {
		NodeGroups []struct {
			Name     string `json:"name"`
			Replicas int    `json:"replicas"`
			Template struct {
				Spec nodeGroupSpec `json:"spec"`
			} `json:"template"`
		} `json:"nodeGroups"`
	}
	var cr struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		Spec struct {
			Image     string `json:"image"`
			MetaStore struct {
				Memory bool `json:"memory"`
			} `json:"metaStore"`
			StateStore struct {
				Memory bool `json:"memory"`
			} `json:"stateStore"`
			Components map[string]nodeGroups `json:"components"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(text, &cr); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"meta", "compute"} {
		for _, g := range cr.Spec.Components[name].NodeGroups {
			if len(g.Template.Spec.InitContainers) != 1 {
				t.Fatalf("%s has no sidecar", name)
			}
			c := g.Template.Spec.InitContainers[0]
			if c.RestartPolicy == nil || *c.RestartPolicy != core.ContainerRestartPolicyAlways {
				t.Errorf("%s: an init container that does not end holds up RisingWave for ever", name)
			}
			checkSidecar(t, "operator, "+name, c, g.Template.Spec.Volumes)
		}
	}
}

func checkSidecar(t *testing.T, where string, c core.Container, volumes []core.Volume) {
	t.Helper()
	checkContainer(t, where, c, core.PodSecurityContext{})
	checkVolumes(t, where, volumes, "rwannotate")
	checkMounts(t, where, c, volumes)
	if c.ReadinessProbe != nil {
		t.Errorf("%s: a readiness probe can take RisingWave out of its Service", where)
	}
	for _, m := range c.VolumeMounts {
		if m.Name == "pod-logs" && m.SubPathExpr != "$(POD_NAMESPACE)_$(POD_NAME)_$(POD_UID)" {
			t.Errorf("%s: sees the logs of other pods", where)
		}
	}
}

// checkContainer holds what is true of our container everywhere.
func checkContainer(t *testing.T, where string, c core.Container, pod core.PodSecurityContext) {
	t.Helper()
	fail := func(format string, args ...any) { t.Helper(); t.Errorf(where+": "+format, args...) }
	for _, r := range []core.ResourceName{core.ResourceCPU, core.ResourceMemory} {
		request, limit := c.Resources.Requests[r], c.Resources.Limits[r]
		if request.IsZero() || !request.Equal(limit) {
			fail("%s: request %v, limit %v; unequal, the pod is not Guaranteed", r, request.String(), limit.String())
		}
	}
	if len(c.Ports) != 1 || c.Ports[0].Name != "annot-http" || c.Ports[0].ContainerPort != 12399 {
		fail("ports %+v", c.Ports)
	}
	s := c.SecurityContext
	user, group := s.RunAsUser, s.RunAsGroup
	nonRoot, profile := s.RunAsNonRoot, s.SeccompProfile
	if user == nil {
		user, group, nonRoot, profile = pod.RunAsUser, pod.RunAsGroup, pod.RunAsNonRoot, pod.SeccompProfile
	}
	switch {
	case *user != 65532, *group != 0, !*nonRoot:
		fail("runs as %d:%d", *user, *group)
	case profile.Type != core.SeccompProfileTypeRuntimeDefault:
		fail("seccomp profile %s", profile.Type)
	case *s.AllowPrivilegeEscalation, !*s.ReadOnlyRootFilesystem, !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}), len(s.Capabilities.Add) > 0:
		fail("security context %+v", s)
	}
	if c.LivenessProbe == nil || c.LivenessProbe.HTTPGet.Path != "/-/healthy" {
		fail("no liveness probe")
	}
	if !slices.Equal(c.Args, []string{"run", "--config=/etc/rwannotate/config.yaml"}) {
		fail("args %q", c.Args)
	}
}

// checkVolumes: the volumes are those of the mounts, and the log directory of
// the node is mounted read-only.
func checkVolumes(t *testing.T, where string, volumes []core.Volume, configMap string) {
	t.Helper()
	for _, v := range volumes {
		switch {
		case v.HostPath != nil && v.HostPath.Path != "/var/log/pods":
			t.Errorf("%s: host path %s", where, v.HostPath.Path)
		case v.ConfigMap != nil && v.ConfigMap.Name != configMap:
			t.Errorf("%s: ConfigMap %s, want %s", where, v.ConfigMap.Name, configMap)
		case v.HostPath == nil && v.ConfigMap == nil && v.EmptyDir == nil:
			t.Errorf("%s: volume %s is of no kind that we use", where, v.Name)
		}
	}
}

func checkMounts(t *testing.T, where string, c core.Container, volumes []core.Volume) {
	t.Helper()
	if len(c.VolumeMounts) != len(volumes) {
		t.Errorf("%s: %d mounts of %d volumes", where, len(c.VolumeMounts), len(volumes))
	}
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(volumes, func(v core.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			t.Errorf("%s: mount of volume %s, which is not there", where, m.Name)
			continue
		}
		if state := strings.HasPrefix(m.MountPath, "/var/lib/rwannotate"); state == m.ReadOnly {
			t.Errorf("%s: %s read-only: %v", where, m.MountPath, m.ReadOnly)
		}
	}
}

// TestDecodeIsStrict: the tests above can fail.
func TestDecodeIsStrict(t *testing.T) {
	good, err := os.ReadFile(configs + "kubernetes/overlays/daemonset/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decode(good); err != nil {
		t.Errorf("the DaemonSet itself: %v", err)
	}
	for _, word := range []string{"containerPort", "runAsGroup", "hostPath", "fieldPath", "terminationGracePeriodSeconds", "mountPath"} {
		bad := bytes.Replace(good, []byte(word+":"), []byte(word+"s:"), 1)
		if _, err := decode(bad); err == nil {
			t.Errorf("%ss is taken for a field", word)
		}
	}
}
