package source

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// containerID ends the names in /var/log/containers.
var containerID = regexp.MustCompile(`-[0-9a-f]{64}$`)

// podOf reads from a log file's path which container wrote it. Two layouts
// are kubelet's:
//
//	…/<namespace>_<pod>_<uid>/<container>/<restart>.log[.<rotated>]
//	…/<pod>_<namespace>_<container>-<id>.log
//
// a third is what a sidecar sees that mounts its own pod's directory:
//
//	…/<container>/<restart>.log
//
// What the path does not tell comes from env, the pod we run in ourselves,
// unless the path names another pod.
func podOf(path, real string, env annotate.K8s) annotate.K8s {
	k, ok := fromPods(real)
	if !ok {
		if k, ok = fromPods(path); !ok {
			k, ok = fromContainers(path)
		}
	}
	if !ok {
		k = env
		if c, n, ok := containerAndRestart(real); ok && env.Pod != "" {
			k.Container, k.Restart = c, n
		}
	}
	if k != (annotate.K8s{}) {
		k.Node = env.Node
	}
	return k
}

func fromPods(path string) (annotate.K8s, bool) {
	container, restart, ok := containerAndRestart(path)
	if !ok {
		return annotate.K8s{}, false
	}
	parts := strings.Split(filepath.Base(filepath.Dir(filepath.Dir(path))), "_")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return annotate.K8s{}, false
	}
	return annotate.K8s{Namespace: parts[0], Pod: parts[1], UID: parts[2], Container: container, Restart: restart}, true
}

func containerAndRestart(path string) (container string, restart int, ok bool) {
	number, rest, ok := strings.Cut(filepath.Base(path), ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || rest != "log" && !strings.HasPrefix(rest, "log.") {
		return "", 0, false
	}
	container = filepath.Base(filepath.Dir(path))
	return container, n, container != "." && container != "/"
}

func fromContainers(path string) (annotate.K8s, bool) {
	name, ok := strings.CutSuffix(filepath.Base(path), ".log")
	id := containerID.FindString(name)
	if !ok || id == "" {
		return annotate.K8s{}, false
	}
	parts := strings.Split(strings.TrimSuffix(name, id), "_")
	if len(parts) != 3 {
		return annotate.K8s{}, false
	}
	return annotate.K8s{Namespace: parts[1], Pod: parts[0], Container: parts[2]}, true
}

// K8sFromPath tells which container wrote the log file at path, as far as the
// path itself says.
func K8sFromPath(path string) annotate.K8s { return podOf(path, path, annotate.K8s{}) }
