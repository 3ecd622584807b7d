# What the CUDA backend needs at build time. Its host code is plain C++ that loads CUDA, cuBLAS and NCCL at
# run time (real/cuda/libraries.h) and always builds. With nvcc, the kernels are compiled into one image, a file
# beside the program that only GPU runs read (real/cuda/kernel_image.h): target rehearse_kernels, a part of `all`
# that `rehearse` does not wait for. With the vendors' headers, our declarations are compared with them.
# nvcc is run as a command: CMake 3.25 does not know C++20 for nvcc 13.

set(REHEARSE_CUDA AUTO CACHE STRING "GPU kernels: AUTO builds them if nvcc is found, ON insists, OFF never does")
set_property(CACHE REHEARSE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT REHEARSE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "REHEARSE_CUDA is \"${REHEARSE_CUDA}\"; expected AUTO, ON or OFF")
endif()

set(REHEARSE_KERNELS_FROM "" CACHE PATH "A folder of another build whose kernels are used if they are the same")

# NCCL looks in the running program for its profiler (real/cuda/nccl_profiler.h).
target_link_options(rehearse_real INTERFACE "LINKER:--export-dynamic-symbol=ncclProfiler_v*")

set(said "none: REHEARSE_CUDA is OFF")
if(NOT REHEARSE_CUDA STREQUAL OFF)
  set(places ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda /opt/cuda)
  find_program(REHEARSE_NVCC nvcc HINTS ${places} PATH_SUFFIXES bin)
  find_path(REHEARSE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${places} PATH_SUFFIXES include)
  find_path(REHEARSE_CUBLAS_INCLUDE cublas_v2.h HINTS ${REHEARSE_CUDA_INCLUDE} ${places} PATH_SUFFIXES include)
  find_path(REHEARSE_NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ${REHEARSE_CUDA_INCLUDE} ${places}
            PATH_SUFFIXES include)
  mark_as_advanced(REHEARSE_NVCC REHEARSE_CUDA_INCLUDE REHEARSE_CUBLAS_INCLUDE REHEARSE_NCCL_INCLUDE)
  if(REHEARSE_NVCC)
    execute_process(COMMAND ${REHEARSE_NVCC} --list-gpu-code OUTPUT_VARIABLE codes RESULT_VARIABLE failed
                    ERROR_QUIET)
  endif()
  if(NOT REHEARSE_NVCC OR failed)
    if(REHEARSE_CUDA STREQUAL ON)
      message(FATAL_ERROR "REHEARSE_CUDA is ON, but no working nvcc was found (set CUDA_HOME)")
    endif()
    set(said "none: no nvcc was found (set CUDA_HOME)")
  else()
    # Machine code for data-centre GPUs and their workstation relatives, as far as the toolkit allows (CUDA 13
    # dropped sm_70); PTX of the newest for later GPUs.
    set(architectures "")
    foreach(number 70 75 80 86 89 90 100 120)
      if(codes MATCHES "sm_${number}(\n|$)")
        list(APPEND architectures ${number})
        list(APPEND flags -gencode arch=compute_${number},code=sm_${number})
        set(newest ${number})
      endif()
    endforeach()
    list(APPEND flags -gencode arch=compute_${newest},code=compute_${newest})
    set(compile ${REHEARSE_NVCC} -fatbin -std=c++17 -O3 --expt-relaxed-constexpr --threads 2
                --compress-mode=size -Werror all-warnings -I${PROJECT_SOURCE_DIR} ${flags})
    # The file's name identifies its sources, so that a program never uses one that does not fit.
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/real/cuda/kernels/*.cuh)
    foreach(name real/cuda/kernels.cu real/cuda/kernel_arguments.h real/kernels/numbers.h real/kernels/storage.h
            sim/schedule/expert_routing.h sim/schedule/kernel.h sim/schedule/sequence_order.h)
      list(APPEND sources ${PROJECT_SOURCE_DIR}/${name})
    endforeach()
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
    set(made_of "${flags}")
    foreach(source ${sources})
      file(SHA256 ${source} hash)
      string(APPEND made_of ${hash})
    endforeach()
    string(SHA256 hash "${made_of}")
    string(SUBSTRING ${hash} 0 12 hash)
    set(name kernels-${hash}.fatbin)
    set(image ${PROJECT_BINARY_DIR}/${name})
    file(GLOB others ${PROJECT_BINARY_DIR}/kernels-*.fatbin)
    list(REMOVE_ITEM others ${image})
    if(others)
      file(REMOVE ${others})
    endif()
    if(REHEARSE_KERNELS_FROM AND NOT REHEARSE_KERNELS_FROM STREQUAL PROJECT_BINARY_DIR AND EXISTS ${REHEARSE_KERNELS_FROM}/${name})
      add_custom_command(
        OUTPUT ${image}
        COMMAND ${CMAKE_COMMAND} -E copy ${REHEARSE_KERNELS_FROM}/${name} ${image}
        COMMENT "Copying GPU kernels" VERBATIM)
    else()
      add_custom_command(
        OUTPUT ${image}
        COMMAND ${compile} -MD -MF ${image}.d -o ${image} ${PROJECT_SOURCE_DIR}/real/cuda/kernels.cu
        DEPENDS ${PROJECT_SOURCE_DIR}/real/cuda/kernels.cu
        DEPFILE ${image}.d
        COMMENT "Compiling GPU kernels" VERBATIM)
    endif()
    add_custom_target(rehearse_kernels ALL DEPENDS ${image})
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/real/cuda/kernel_image.cc
                 PROPERTY COMPILE_DEFINITIONS REHEARSE_KERNEL_IMAGE="${name}")
    list(JOIN architectures ", sm_" listed)
    set(said "sm_${listed} by ${REHEARSE_NVCC}")
  endif()
  if(REHEARSE_CUDA_INCLUDE AND REHEARSE_CUBLAS_INCLUDE AND REHEARSE_NCCL_INCLUDE)
    add_library(rehearse_cuda_check OBJECT ${PROJECT_SOURCE_DIR}/real/cuda/libraries_check.cc)
    target_include_directories(rehearse_cuda_check PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(rehearse_cuda_check SYSTEM PRIVATE
      ${REHEARSE_CUDA_INCLUDE} ${REHEARSE_CUBLAS_INCLUDE} ${REHEARSE_NCCL_INCLUDE})
    target_link_libraries(rehearse_cuda_check PRIVATE rehearse_sim)
    string(APPEND said "; declarations checked against ${REHEARSE_CUDA_INCLUDE} and ${REHEARSE_NCCL_INCLUDE}/nccl.h")
  endif()
endif()
if(NOT TARGET rehearse_kernels)
  add_custom_target(rehearse_kernels)  # nothing to make, so that its users need not check
endif()
message(STATUS "GPU kernels: ${said}")
