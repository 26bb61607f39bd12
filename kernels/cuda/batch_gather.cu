#include "kernels/cuda/batch_gather.h"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/row_teams.h"
#include "kernels/cuda/storage.h"

namespace mpc::cuda {
namespace {

template <typename Unit>
__global__ void __launch_bounds__(kTeamThreads) BatchGatherKernel(RowTeams teams, BatchGather gather) {
  const std::int64_t first = *gather.batch_index * gather.batch_rows;
  teams.ForEachRow(gather.batch_rows, [&](std::int64_t i, int lane) {
    const std::int64_t row = gather.permutation[(first + i) % gather.rows];
    const Unit* from = static_cast<const Unit*>(gather.data) + row * teams.units;
    Unit* to = static_cast<Unit*>(gather.batch) + i * teams.units;
    for (std::int64_t unit = lane; unit < teams.units; unit += teams.lanes) to[unit] = from[unit];
  });
}

template <typename Unit>
absl::Status LaunchWith(const BatchGather& gather, LaunchQueue& queue) {
  const RowTeams teams = RowTeams::For(gather.batch_rows, static_cast<std::int64_t>(gather.row_bytes / sizeof(Unit)));
  return launch(queue, &BatchGatherKernel<Unit>, teams.Shape(), teams, gather);
}

}  // namespace

absl::Status EnqueueBatchGather(const BatchGather& gather, LaunchQueue& queue) {
  if (gather.rows < 1) return absl::InvalidArgumentError("a batch of a data set without rows");
  if (gather.row_bytes == 0) return absl::OkStatus();
  // The widest unit that every row's start is a multiple of.
  const std::uintptr_t starts =
      gather.row_bytes | reinterpret_cast<std::uintptr_t>(gather.data) | reinterpret_cast<std::uintptr_t>(gather.batch);
  if (starts % sizeof(Bits128) == 0) return LaunchWith<Bits128>(gather, queue);
  if (starts % sizeof(std::uint32_t) == 0) return LaunchWith<std::uint32_t>(gather, queue);
  return LaunchWith<std::uint8_t>(gather, queue);
}

}  // namespace mpc::cuda
