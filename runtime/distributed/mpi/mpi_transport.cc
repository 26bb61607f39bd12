#include "runtime/distributed/mpi/mpi_transport.h"

#include "runtime/distributed/mpi/mpi_communicator.h"

extern "C" __attribute__((visibility("default"))) const mpc::runtime::PluginTable* mpc_mpi_transport() {
  static const mpc::distributed::MpiTransport transport = {{mpc::distributed::kMpiTransportBuild},
                                                           mpc::distributed::MpiCommunicator::Open};
  return &transport;
}
