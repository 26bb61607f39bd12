// mpi_own_start funneled|single: a program that starts and ends MPI itself.
#include <mpi.h>

#include <iostream>
#include <memory>
#include <string>

#include "runtime/distributed/mpi/mpi_library.h"

int main(int count, char** arguments) {
  const bool funneled = count == 2 && std::string(arguments[1]) == "funneled";
  int level = 0;
  MPI_Init_thread(&count, &arguments, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_SINGLE, &level);
  {
    const absl::StatusOr<std::unique_ptr<mpc::Communicator>> group = mpc::distributed::OpenMpiCommunicator();
    const absl::Status status = group.ok() ? (*group)->Barrier() : group.status();
    std::cout << "group: " + status.ToString() + "\n" << std::flush;
  }
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  std::cout << "own sum: " + std::to_string(sum) + "\n" << std::flush;
  return 0;
}
