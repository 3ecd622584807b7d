// Every kernel of sim/schedule/kernel.h that is not a matrix product, for NVIDIA GPUs: compiled to
// one image that the program carries and loads at run time (real/cuda/kernel_image.h). Which kernel
// is which launch: real/cuda/launch.cc.
#include "real/cuda/kernels/attention.cuh"
#include "real/cuda/kernels/attention_part.cuh"
#include "real/cuda/kernels/elementwise.cuh"
#include "real/cuda/kernels/experts.cuh"
#include "real/cuda/kernels/group_norm.cuh"
#include "real/cuda/kernels/image.cuh"
#include "real/cuda/kernels/latent.cuh"
#include "real/cuda/kernels/loss.cuh"
#include "real/cuda/kernels/norm.cuh"
#include "real/cuda/kernels/optimizer.cuh"
