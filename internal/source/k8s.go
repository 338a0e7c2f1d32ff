package source

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// K8sFromPath reads what the kubelet's layout of log files tells about the
// container that wrote one:
//
//	…/pods/<namespace>_<pod>_<uid>/<container>/<restart>.log
//	…/containers/<pod>_<namespace>_<container>-<64 hex digits>.log
//	…/<container>/<restart>.log          a pod's own directory, mounted alone
//
// The zero value is returned for any other path.
func K8sFromPath(path string) annotate.K8s {
	dir, file := filepath.Split(filepath.Clean(path))
	base, _, _ := strings.Cut(file, ".log")
	if k, ok := fromContainersDir(base); ok {
		return k
	}
	restart, err := strconv.Atoi(base)
	if err != nil || restart < 0 {
		return annotate.K8s{}
	}
	dir = filepath.Clean(dir)
	k := annotate.K8s{Container: filepath.Base(dir), Restart: restart}
	parts := strings.Split(filepath.Base(filepath.Dir(dir)), "_")
	if len(parts) == 3 {
		k.Namespace, k.Pod, k.UID = parts[0], parts[1], parts[2]
	}
	return k
}

// fromContainersDir reads the names of the links in /var/log/containers.
func fromContainersDir(base string) (annotate.K8s, bool) {
	parts := strings.Split(base, "_")
	if len(parts) != 3 {
		return annotate.K8s{}, false
	}
	i := strings.LastIndexByte(parts[2], '-')
	if i <= 0 || len(parts[2])-i-1 != 64 {
		return annotate.K8s{}, false
	}
	return annotate.K8s{Namespace: parts[1], Pod: parts[0], Container: parts[2][:i]}, true
}
