#include "tools/mpc-run/loss_reader.h"

#include "absl/strings/str_format.h"
#include "frontend/graph/tensor.h"

namespace mpc::tools {

absl::Status LossReader::ReadUntil(std::uint64_t end) {
  for (; next_ < end; ++next_) {
    const absl::StatusOr<absl::Span<const std::uint8_t>> bytes = step_.OutputOfStep(next_, 0);
    if (!bytes.ok()) return bytes.status();
    const runtime::Program& program = step_.program();
    const TensorSpec& spec = program.values[program.outputs[0].value].spec;
    const absl::StatusOr<double> loss = Tensor::FromBytes(spec, bytes->data(), bytes->size()).TryItem<double>();
    if (!loss.ok()) return loss.status();
    losses_.push_back(*loss);
    if (print_every_ > 0 && losses_.size() % static_cast<std::size_t>(print_every_) == 0) {
      progress_ << absl::StrFormat("step %d: loss %.6g\n", losses_.size(), *loss) << std::flush;
    }
  }
  return absl::OkStatus();
}

}  // namespace mpc::tools
