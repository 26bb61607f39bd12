// How fast pictures are read: mpc and torchvision, in turn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/data_peer.h"
#include "tools/mpc-bench/options.h"

namespace mpc::tools {

/// The runs of one program.
struct Reader {
  std::string name;  ///< "mpc", "torchvision, 2 workers"
  std::string version;
  std::string settings;
  std::vector<double> rates;  ///< pictures a second, one a run
};

struct DataTable {
  std::int64_t pictures = 0;                  ///< files
  double bytes = 0;                           ///< mean size of a file
  std::vector<Reader> readers;                ///< mpc first
  std::optional<PixelDifference> difference;  ///< where there is a peer
};

/// Makes pictures in a folder of its own and reads them in `options.runs` rounds. In a round mpc reads in this process,
/// then the peer with 0, 1 and 2 workers, each time in a process of its own. Before, the pixels of both are compared.
/// Errors: the peer is missing; its pixels are not mpc's, within what rounding explains.
absl::StatusOr<DataTable> MeasureData(const DataOptions& options);

}  // namespace mpc::tools
