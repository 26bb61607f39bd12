// Marks functions that run on the host and, compiled by nvcc, on a GPU.
#pragma once

#ifdef __CUDACC__
#define MPC_HOST_DEVICE __host__ __device__
#else
#define MPC_HOST_DEVICE
#endif
