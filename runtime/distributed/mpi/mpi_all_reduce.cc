#include "runtime/distributed/mpi/mpi_all_reduce.h"

#include <algorithm>
#include <cstring>

#include "runtime/distributed/combine_elements.h"
#include "runtime/distributed/mpi/mpi_process.h"

namespace mpc::distributed {
namespace {

template <DType kDType>
void Add(void* input, void* sum, int* elements, MPI_Datatype* /*datatype*/) {
  CombineElements(Reduction::kSum, kDType, input, sum, sum, static_cast<std::size_t>(*elements));
}

MPI_User_function* FunctionOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return &Add<DType::kF32>;
    case DType::kF16:
      return &Add<DType::kF16>;
    case DType::kBF16:
      return &Add<DType::kBF16>;
    default:
      return nullptr;
  }
}

std::size_t BytesOf(const ReducedPart& part) { return part.elements * ElementSize(part.dtype); }

}  // namespace

MpiAllReduce::~MpiAllReduce() {
  for (auto& [dtype, addition] : additions_) MPI_Op_free(&addition);
}

bool MpiAllReduce::Takes(absl::Span<const ReducedPart> parts) {
  return !parts.empty() && FunctionOf(parts.front().dtype) != nullptr &&
         std::all_of(parts.begin(), parts.end(), [&](const ReducedPart& part) {
           return part.reduction == Reduction::kSum && part.dtype == parts.front().dtype;
         });
}

absl::Status MpiAllReduce::Run(absl::Span<const ReducedPart> parts) {
  const ReducedPart& first = parts.front();
  if (parts.size() == 1) return Sum(first.dtype, first.input, first.output, first.elements);
  std::byte* const packed = Pack(parts);
  absl::Status status = Sum(first.dtype, packed, packed, memory_.size() / ElementSize(first.dtype));
  if (status.ok()) Unpack(parts);
  return status;
}

std::byte* MpiAllReduce::Pack(absl::Span<const ReducedPart> parts) {
  std::size_t bytes = 0;
  for (const ReducedPart& part : parts) bytes += BytesOf(part);
  memory_.resize(bytes);
  std::byte* next = memory_.data();
  for (const ReducedPart& part : parts) {
    if (part.elements != 0) std::memcpy(next, part.input, BytesOf(part));
    next += BytesOf(part);
  }
  return memory_.data();
}

void MpiAllReduce::Unpack(absl::Span<const ReducedPart> parts) const {
  const std::byte* next = memory_.data();
  for (const ReducedPart& part : parts) {
    if (part.elements != 0) std::memcpy(part.output, next, BytesOf(part));
    next += BytesOf(part);
  }
}

absl::Status MpiAllReduce::Sum(DType dtype, const void* input, void* output, std::size_t elements) {
  if (!additions_.contains(dtype)) {
    MPI_Op addition = MPI_OP_NULL;
    absl::Status status = StatusOfMpi(MPI_Op_create(FunctionOf(dtype), /*commute=*/1, &addition), "MPI_Op_create");
    if (!status.ok()) return status;
    additions_[dtype] = addition;
  }
  const MPI_Datatype element = dtype == DType::kF32 ? MPI_FLOAT : MPI_UINT16_T;
  return exchange_.AllReduce(input, output, elements, element, additions_[dtype]);
}

}  // namespace mpc::distributed
