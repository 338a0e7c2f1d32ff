// Package explain holds what `rwannotate explain` says to ten messages of ten
// areas, as a person has read and approved it. A change of the catalogue or of
// the layout shows here as prose.
package explain

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files; read them afterwards")

// messages are log lines as RisingWave writes them, by area.
var messages = map[string]string{
	"streaming":       "2026-08-21T14:05:22.662Z ERROR risingwave_stream::task::actor_manager: actor exit with error actor_id=17 error=Executor error: exchange channel from remote upstream actor 311 closed unexpectedly",
	"recovery":        "2026-08-21T14:05:22.662Z ERROR failure_recovery:recovery_attempt: risingwave_meta::barrier::worker: recovery failed error=global recovery failed due to failure of databases [1]",
	"object-store":    "2026-08-21T14:05:22.662Z ERROR risingwave_object_store::object: read failed error=Timeout error: Retry attempts exhausted for read. Please modify read_attempt_timeout_ms (current=8000) and read_retry_attempts (current=3) under [storage.object_store.retry] in the config accordingly if needed.",
	"start":           "thread 'rw-main' panicked at src/meta/node/src/server.rs:480:27:\ncalled `Result::unwrap()` on an `Err` value: ObjectStore(Internal error: Data directory is already used by another cluster with id \"5f0e2b0c\", path hummock_001/cluster_id/0.)",
	"licence":         "2026-08-21T14:05:22.662Z ERROR risingwave_rpc_client::meta_client: failed to register worker, exiting... error=failed to add worker node: gRPC request to meta service failed: Internal error: invalid license key: InvalidToken",
	"source":          "2026-08-21T14:05:22.662Z ERROR risingwave_connector::parser: failed to parse message, skipping error=Protocol error: InternalError(TapeError) at character 0 ('S') split_id=\"0\" offset=\"2203981\" suppressed_count=0",
	"schema-registry": "2026-08-21T14:05:22.662Z ERROR risingwave_stream::task::actor_manager: actor exit with error actor_id=59 error=Executor error: Connector error: load schema failed: all request confluent registry all timeout, req path [\"subjects\"], urls http://registry:8081/\n\tconfluent registry send req error: error sending request",
	"sink":            "2026-08-21T14:05:22.662Z ERROR risingwave_stream::task::actor_manager: actor exit with error actor_id=41 error=Executor error: Sink error: sink_id=24, error: Redis error: An error was signalled by the server - ClusterDown: The cluster is down",
	"frontend":        "2026-08-21T14:05:22.662Z ERROR handle_query{mode=\"simple query\" session_id=7 sql=SELECT 1}: pgwire::pg_protocol: error when process message error=Failed to run the query: Streaming vnode mapping not found for fragment 1172",
	"connector-node":  "2026-08-21T14:05:22.662Z ERROR risingwave_connector_node: engine#4001 terminated with error. message: Stopping connector after error in the application's handler method thread=\"rw-dbz-engine-runner-4001\"",
}

func TestExplain(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "rwannotate")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/rwannotate").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for area, message := range messages {
		t.Run(area, func(t *testing.T) {
			got, err := exec.Command(bin, "explain", message).Output()
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("golden", area+".txt")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}
