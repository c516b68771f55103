// Package sqlpayvault keeps the journal of a SubmitAll of package payvault in a database, so that a run that was killed
// goes on and sends no batch twice. Open a [Journal] for each run, give it to SubmitAll with a Job that names the
// cards, and close it; see the example.
//
// [Open] keeps the journal in a file, by SQLite, which is linked in. [New] keeps it in Postgres, through a driver such
// as github.com/jackc/pgx/v5/stdlib.
//
// # Durability
//
// Begin and End return when the database has committed what they write. In a file of Open, what Begin writes survives a
// power cut. The latest outcomes may not: those batches are then of unknown outcome. A file that was moved or copied
// without its latest batches is refused. A backup that is older than the last run is not: nobody can tell that it is
// older, so do not restore one.
//
// # Leases
//
// One run of a job goes on at a time: a second one is refused with [ErrRunning]. The lease of a run that was killed
// ends by itself, see [WithLease]. A run that was frozen for longer than that is taken over. When it wakes up, it
// begins no batch any more, and still no batch is sent twice, since each is begun by one run only. [WithoutLease] is
// for jobs that are meant to be worked on by several, such as those of package temporalpayvault.
//
// # Tables
//
// The journal makes the tables payvault_jobs and payvault_batches if they are not there. They hold no card data: the
// name of the job, the number of each batch and of its cards, and what the service said of it, cleared as errors are.
// Rows stay until you delete them. Only [Journal.Resolve] should change them.
//
// A batch that was begun and not ended may have arrived, and so may one of status "unknown". Neither is ever sent again
// by itself. [Journal.Unresolved] lists them, and Resolve records what somebody has found out.
package sqlpayvault
