// Package sqlpayvault keeps the journal of SubmitAll of package payvault in a database. So a run that was killed can go
// on, and no batch is sent twice. Open a [Journal] for each run, give it to SubmitAll with a Job that names the cards,
// and close it; see the example.
//
// [Open] keeps the journal in a file, by SQLite, which is linked in. [New] keeps it in Postgres, through a driver such
// as github.com/jackc/pgx/v5/stdlib.
//
// # Durability
//
// Begin and End return when the database has committed what they write. In a file of Open, what Begin writes survives a
// power cut. The latest outcomes may not: those batches are then of unknown outcome. A file that was moved or copied
// without its latest batches is refused. Do not restore a backup that is older than the last run: nobody can tell that
// it is older, so it is not refused.
//
// # Leases
//
// A job has one run at a time, which holds the lease of the job. A second run is refused with [ErrRunning]. The lease
// of a run that was killed ends by itself, see [WithLease]. If a run was frozen for longer than its lease, another run
// takes the job over. When the frozen run wakes up, it begins no further batch. No batch is sent twice, because each
// batch is begun by one run only. [WithoutLease] is for jobs that several processes work on, such as those of package
// temporalpayvault.
//
// # Tables
//
// The journal makes the tables payvault_jobs and payvault_batches if they are not there. They hold no card data: the
// name of the job, the number of each batch and of its cards, and what the service said of it, cleared as errors are.
// Rows stay until you delete them. Only [Journal.Resolve] should change them.
//
// A batch that was begun and not ended may have arrived, and so may a batch of status "unknown". No run sends them
// again. [Journal.Unresolved] lists them, and Resolve records what somebody has found out.
package sqlpayvault
