// Graphs, code, the vendor's libraries and named ranges of CudartApi.
#include <cublasLt.h>
#include <cudnn.h>
#include <nvtx3/nvToolsExt.h>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/cudart_api.h"
#include "runtime/cuda/version_text.h"

namespace mpc::runtime {
absl::Status CudartApi::BeginCapture(Stream stream) {
  // Relaxed: the first use of a kernel may load its module, which the stricter modes forbid during a capture.
  return CudaStatus(cudaStreamBeginCapture(static_cast<cudaStream_t>(stream), cudaStreamCaptureModeRelaxed),
                    "cudaStreamBeginCapture");
}

absl::StatusOr<CudaApi::Graph> CudartApi::EndCapture(Stream stream) {
  cudaGraph_t graph = nullptr;
  const absl::Status status =
      CudaStatus(cudaStreamEndCapture(static_cast<cudaStream_t>(stream), &graph), "cudaStreamEndCapture");
  if (!status.ok()) return status;
  return static_cast<Graph>(graph);
}

absl::StatusOr<std::size_t> CudartApi::NodeCount(Graph graph) {
  std::size_t count = 0;
  const absl::Status status =
      CudaStatus(cudaGraphGetNodes(static_cast<cudaGraph_t>(graph), nullptr, &count), "cudaGraphGetNodes");
  if (!status.ok()) return status;
  return count;
}

absl::StatusOr<CudaApi::GraphExec> CudartApi::Instantiate(Graph graph) {
  cudaGraphExec_t exec = nullptr;
  const absl::Status status =
      CudaStatus(cudaGraphInstantiate(&exec, static_cast<cudaGraph_t>(graph), 0), "cudaGraphInstantiate");
  if (!status.ok()) return status;
  return static_cast<GraphExec>(exec);
}

absl::Status CudartApi::LaunchGraph(GraphExec graph, Stream stream) {
  return CudaStatus(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), static_cast<cudaStream_t>(stream)),
                    "cudaGraphLaunch");
}

absl::Status CudartApi::DestroyGraph(Graph graph) {
  return CudaStatus(cudaGraphDestroy(static_cast<cudaGraph_t>(graph)), "cudaGraphDestroy");
}

absl::Status CudartApi::DestroyGraphExec(GraphExec graph) {
  return CudaStatus(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)), "cudaGraphExecDestroy");
}

absl::StatusOr<CudaApi::Library> CudartApi::LoadCode(absl::Span<const std::uint8_t> code) {
  cudaLibrary_t library = nullptr;
  // PTX is text without a length: it ends with a zero, which a string has behind its content.
  const std::string image(code.begin(), code.end());
  const absl::Status status =
      CudaStatus(cudaLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                 absl::StrCat("cudaLibraryLoadData of ", code.size(), " bytes"));
  if (!status.ok()) return status;
  return static_cast<Library>(library);
}

absl::StatusOr<cuda::KernelFunction> CudartApi::FindKernel(Library library, const std::string& name) {
  cudaKernel_t kernel = nullptr;
  const absl::Status status =
      CudaStatus(cudaLibraryGetKernel(&kernel, static_cast<cudaLibrary_t>(library), name.c_str()),
                 absl::StrCat("cudaLibraryGetKernel of \"", name, "\""));
  if (!status.ok()) return status;
  cuda::KernelFunction function;
  function.entry = kernel;
  return function;
}

absl::Status CudartApi::UnloadCode(Library library) {
  return CudaStatus(cudaLibraryUnload(static_cast<cudaLibrary_t>(library)), "cudaLibraryUnload");
}

absl::StatusOr<cuda::LibraryHandles> CudartApi::CreateLibraryHandles() {
  cublasLtHandle_t cublas_lt = nullptr;
  if (const cublasStatus_t status = cublasLtCreate(&cublas_lt); status != CUBLAS_STATUS_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrCat("cublasLtCreate: ", cublasLtGetStatusName(status), ": ", cublasLtGetStatusString(status)));
  }
  cudnnHandle_t cudnn = nullptr;
  if (const cudnnStatus_t status = cudnnCreate(&cudnn); status != CUDNN_STATUS_SUCCESS) {
    cublasLtDestroy(cublas_lt);
    return absl::FailedPreconditionError(absl::StrCat("cudnnCreate: ", cudnnGetErrorString(status)));
  }
  return cuda::LibraryHandles{cublas_lt, cudnn};
}

absl::Status CudartApi::DestroyLibraryHandles(const cuda::LibraryHandles& handles) {
  if (handles.cudnn != nullptr) cudnnDestroy(static_cast<cudnnHandle_t>(handles.cudnn));
  if (handles.cublas_lt != nullptr) cublasLtDestroy(static_cast<cublasLtHandle_t>(handles.cublas_lt));
  return absl::OkStatus();
}

std::string CudartApi::LibraryVersions() {
  return absl::StrCat("cublasLt ", LibraryVersionText(cublasLtGetVersion()), ", cudnn ",
                      LibraryVersionText(cudnnGetVersion()));
}

void CudartApi::PushRange(const char* name) { nvtxRangePushA(name); }

void CudartApi::PopRange() { nvtxRangePop(); }

}  // namespace mpc::runtime
