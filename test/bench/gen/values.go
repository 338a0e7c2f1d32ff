package gen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

var (
	relations = []string{"orders", "mv_orders_daily", "customer", "t_events", "page_views", "kafka_clicks", "sink_pg_users", "idx_orders_cust",
		"lineitem", "mv_top_sellers", "s_ledger_5", "payments_cdc", "nexmark_bid", "auction", "inventory_src", "mv_sessions_1m"}
	hosts = []string{"rw-meta-0.rw-meta-headless:5690", "rw-compute-0.rw-compute-headless:5688", "rw-compute-1.rw-compute-headless:5688",
		"rw-frontend-7d9c5b-x2x9k:4566", "rw-compactor-5f6d-8kzpw:6660", "10.42.3.17:5688", "127.0.0.1:5690"}
	executors = []string{"Materialize", "HashAgg", "HashJoin", "Project", "Filter", "Source", "SourceBackfill", "SnapshotBackfill", "Sink",
		"Merge", "Dispatch", "TopN", "OverWindow", "Dedup", "RowIdGen", "WatermarkFilter"}
	states = []string{"Creating", "Created", "Running", "Finished", "Paused", "Initial", "Syncing"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// epoch is a physical clock in milliseconds since 2021-04-01, shifted by 16.
func epoch(r *rand.Rand) int64 { return 8321498123468800 + int64(r.IntN(1e9))<<16 }

// value invents what a placeholder such as `{}`, `{name}` or `{0:?}` printed.
func value(r *rand.Rand, hole string) string {
	name := strings.Trim(hole, "{}?#:")
	switch {
	case strings.Contains(name, "epoch"):
		return strconv.FormatInt(epoch(r), 10)
	case strings.HasSuffix(name, "id"), strings.HasSuffix(name, "count"), strings.HasSuffix(name, "size"):
		return strconv.Itoa(1 + r.IntN(5000))
	case strings.HasSuffix(hole, "?}"):
		return debugValue(r)
	default:
		return displayValue(r)
	}
}

func displayValue(r *rand.Rand) string {
	switch r.IntN(10) {
	case 0, 1, 2:
		return strconv.Itoa(1 + r.IntN(100_000))
	case 3:
		return strconv.FormatInt(epoch(r), 10)
	case 4:
		return pick(r, hosts)
	case 5:
		return fmt.Sprintf("%d.%03dms", r.IntN(900), r.IntN(1000))
	case 6:
		return fmt.Sprintf("hummock_001/%03d/%d.data", r.IntN(256), r.IntN(1_000_000))
	case 7:
		return pick(r, executors)
	default:
		return pick(r, relations)
	}
}

func debugValue(r *rand.Rand) string {
	switch r.IntN(9) {
	case 0, 1:
		return strconv.Quote(pick(r, relations))
	case 2:
		return fmt.Sprintf("Some(%d)", r.IntN(5000))
	case 3:
		return "None"
	case 4:
		return fmt.Sprintf("[%d, %d, %d]", r.IntN(9000), r.IntN(9000), r.IntN(9000))
	case 5:
		return pick(r, states)
	case 6:
		return fmt.Sprintf("{%d: %q, %d: %q}", r.IntN(99), pick(r, states), r.IntN(99), pick(r, states))
	case 7:
		return fmt.Sprintf("HostAddress { host: %q, port: %d }", "compute-"+strconv.Itoa(r.IntN(9)), 5688)
	default:
		return fmt.Sprintf("WorkerSlotId(%d)", r.IntN(1<<40))
	}
}

// bitmap is the Debug form of a vnode bitmap: n ones and the rest zeros.
func bitmap(n int) string { return strings.Repeat("1", n) + strings.Repeat("0", 256-n) }
