#include "runtime/cuda/cudart_api.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/version_text.h"

namespace mpc::runtime {
namespace {

/// More dynamic shared memory than this must be asked for.
constexpr std::size_t kDefaultSharedBytes = 48 << 10;
constexpr std::size_t kMaxArguments = 512;

cudaStream_t AsStream(CudaApi::Stream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t AsEvent(CudaApi::Event event) { return static_cast<cudaEvent_t>(event); }

cudaMemcpyKind KindOf(CudaCopy kind) {
  switch (kind) {
    case CudaCopy::kHostToDevice:
      return cudaMemcpyHostToDevice;
    case CudaCopy::kDeviceToHost:
      return cudaMemcpyDeviceToHost;
    case CudaCopy::kDeviceToDevice:
      return cudaMemcpyDeviceToDevice;
  }
  return cudaMemcpyDefault;
}

absl::StatusCode CodeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorDevicesUnavailable:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status CudaStatus(cudaError_t error, const std::string& call) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // an error that is not sticky must not show up in a later call
  return absl::Status(CodeOf(error),
                      absl::StrCat(call, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error)));
}

absl::StatusOr<int> CudartApi::DeviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice) {
    cudaGetLastError();
    return 0;
  }
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    if (driver == 0) {
      return absl::UnavailableError(
          absl::StrCat("no NVIDIA driver was found (libcuda.so.1); this backend needs one "
                       "that serves CUDA ",
                       CudaVersionText(CUDART_VERSION)));
    }
    return absl::UnavailableError(absl::StrCat("the driver is too old: it serves CUDA ", CudaVersionText(driver),
                                               ", this backend was built with CUDA ", CudaVersionText(CUDART_VERSION),
                                               "; install a newer driver"));
  }
  if (absl::Status status = CudaStatus(error, "cudaGetDeviceCount"); !status.ok()) return status;
  return count;
}

absl::StatusOr<CudaDeviceProperties> CudartApi::Properties() {
  cudaDeviceProp properties;
  absl::Status status = CudaStatus(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
  CudaDeviceProperties result;
  if (status.ok()) status = CudaStatus(cudaDriverGetVersion(&result.driver_version), "cudaDriverGetVersion");
  if (status.ok()) status = CudaStatus(cudaRuntimeGetVersion(&result.runtime_version), "cudaRuntimeGetVersion");
  if (!status.ok()) return status;
  result.name = properties.name;
  result.id = "GPU-";
  for (const char byte : properties.uuid.bytes) {
    absl::StrAppend(&result.id, absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
  }
  result.compute_capability = properties.major * 10 + properties.minor;
  starts_early_ = result.compute_capability >= 90;
  result.multiprocessors = properties.multiProcessorCount;
  result.memory_bytes = properties.totalGlobalMem;
  result.l2_cache_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  return result;
}

absl::StatusOr<CudaMemoryInfo> CudartApi::MemoryInfo() {
  CudaMemoryInfo info;
  if (absl::Status status = CudaStatus(cudaMemGetInfo(&info.free_bytes, &info.total_bytes), "cudaMemGetInfo");
      !status.ok()) {
    return status;
  }
  return info;
}

absl::Status CudartApi::UseDevice() { return CudaStatus(cudaSetDevice(device_), "cudaSetDevice"); }

absl::StatusOr<void*> CudartApi::Malloc(std::size_t bytes) {
  void* memory = nullptr;
  const absl::Status status = CudaStatus(cudaMalloc(&memory, bytes), absl::StrCat("cudaMalloc of ", bytes, " bytes"));
  if (!status.ok()) return status;
  return memory;
}

absl::Status CudartApi::Free(void* memory) { return CudaStatus(cudaFree(memory), "cudaFree"); }

absl::StatusOr<void*> CudartApi::MallocHost(std::size_t bytes) {
  void* memory = nullptr;
  const absl::Status status =
      CudaStatus(cudaMallocHost(&memory, bytes), absl::StrCat("cudaMallocHost of ", bytes, " bytes"));
  if (!status.ok()) return status;
  return memory;
}

absl::Status CudartApi::FreeHost(void* memory) { return CudaStatus(cudaFreeHost(memory), "cudaFreeHost"); }

absl::StatusOr<CudaApi::Stream> CudartApi::CreateStream() {
  cudaStream_t stream = nullptr;
  const absl::Status status =
      CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  if (!status.ok()) return status;
  return static_cast<Stream>(stream);
}

absl::Status CudartApi::DestroyStream(Stream stream) {
  return CudaStatus(cudaStreamDestroy(AsStream(stream)), "cudaStreamDestroy");
}

absl::Status CudartApi::SynchronizeStream(Stream stream) {
  return CudaStatus(cudaStreamSynchronize(AsStream(stream)), "cudaStreamSynchronize");
}

absl::StatusOr<CudaApi::Event> CudartApi::CreateEvent(bool timing) {
  cudaEvent_t event = nullptr;
  const absl::Status status = CudaStatus(
      cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreateWithFlags");
  if (!status.ok()) return status;
  return static_cast<Event>(event);
}

absl::Status CudartApi::DestroyEvent(Event event) {
  return CudaStatus(cudaEventDestroy(AsEvent(event)), "cudaEventDestroy");
}

absl::Status CudartApi::RecordEvent(Event event, Stream stream) {
  return CudaStatus(cudaEventRecord(AsEvent(event), AsStream(stream)), "cudaEventRecord");
}

absl::Status CudartApi::WaitEvent(Stream stream, Event event) {
  return CudaStatus(cudaStreamWaitEvent(AsStream(stream), AsEvent(event), 0), "cudaStreamWaitEvent");
}

absl::Status CudartApi::SynchronizeEvent(Event event) {
  return CudaStatus(cudaEventSynchronize(AsEvent(event)), "cudaEventSynchronize");
}

absl::StatusOr<bool> CudartApi::EventDone(Event event) {
  const cudaError_t error = cudaEventQuery(AsEvent(event));
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  if (absl::Status status = CudaStatus(error, "cudaEventQuery"); !status.ok()) return status;
  return true;
}

absl::StatusOr<double> CudartApi::ElapsedMilliseconds(Event from, Event to) {
  float milliseconds = 0;
  const absl::Status status =
      CudaStatus(cudaEventElapsedTime(&milliseconds, AsEvent(from), AsEvent(to)), "cudaEventElapsedTime");
  if (!status.ok()) return status;
  return static_cast<double>(milliseconds);
}

absl::Status CudartApi::Copy(void* to, const void* from, std::size_t bytes, CudaCopy kind, Stream stream) {
  return CudaStatus(cudaMemcpyAsync(to, from, bytes, KindOf(kind), AsStream(stream)),
                    absl::StrCat("cudaMemcpyAsync of ", bytes, " bytes"));
}

absl::Status CudartApi::Fill(void* to, std::uint8_t byte, std::size_t bytes, Stream stream) {
  return CudaStatus(cudaMemsetAsync(to, byte, bytes, AsStream(stream)),
                    absl::StrCat("cudaMemsetAsync of ", bytes, " bytes"));
}

absl::Status CudartApi::Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                               absl::Span<const cuda::KernelArgument> arguments, Stream stream) {
  if (arguments.size() > kMaxArguments) {
    return absl::InvalidArgumentError(
        absl::StrCat("a kernel takes at most ", kMaxArguments, " parameters, got ", arguments.size()));
  }
  std::array<void*, kMaxArguments> addresses;
  for (std::size_t i = 0; i < arguments.size(); ++i) addresses[i] = const_cast<void*>(arguments[i].data);
  if (shape.shared_bytes > kDefaultSharedBytes) {
    absl::Status status = CudaStatus(cudaFuncSetAttribute(function.entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                          static_cast<int>(shape.shared_bytes)),
                                     absl::StrCat("asking for ", shape.shared_bytes, " bytes of shared memory"));
    if (!status.ok()) return status;
  }
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.blocks_x, shape.blocks_y, shape.blocks_z);
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = AsStream(stream);
  config.attrs = &early;
  config.numAttrs = function.awaits_earlier && starts_early_ ? 1 : 0;
  const cudaError_t error = cudaLaunchKernelExC(&config, function.entry, addresses.data());
  if (error == cudaSuccess) return absl::OkStatus();
  return CudaStatus(error, absl::StrCat("cudaLaunchKernelExC with ", shape.blocks_x, "x", shape.blocks_y, "x",
                                        shape.blocks_z, " blocks of ", shape.threads, " threads and ",
                                        shape.shared_bytes, " bytes of shared memory"));
}

}  // namespace mpc::runtime
