// Put before MPI (LD_PRELOAD): one rank never comes back from one of MPI's calls, as when a peer
// does not answer while two ranks connect. STUCK_RANK says which, STUCK_IN is "send", "test" or
// "finalize", and STUCK_AFTER how many calls of that kind go well.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void MaybeStop(const char* call, int* calls) {
  const char* in = getenv("STUCK_IN");
  const char* after = getenv("STUCK_AFTER");
  const char* wanted = getenv("STUCK_RANK");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (in == NULL || after == NULL || wanted == NULL || rank == NULL) return;
  if (strcmp(in, call) != 0 || strcmp(rank, wanted) != 0 || (*calls)++ < atoi(after)) return;
  for (;;) pause();
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm group,
              MPI_Request* request) {
  static int calls = 0;
  MaybeStop("send", &calls);
  return PMPI_Isend(data, count, type, to, tag, group, request);
}

int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  static int calls = 0;
  MaybeStop("test", &calls);
  return PMPI_Test(request, done, status);
}

int MPI_Finalize(void) {
  static int calls = 0;
  MaybeStop("finalize", &calls);
  return PMPI_Finalize();
}
