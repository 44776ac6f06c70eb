//! Errors of opening a GPU.

use std::fmt;

use cudarc::cublas::result::CublasError;
use cudarc::driver::DriverError;
use cudarc::nvrtc::CompileError;

/// Reason why no GPU can be used.
#[derive(Debug)]
pub enum CudaError {
    /// A library is not installed or cannot be loaded.
    Library(&'static str),
    /// The driver reported an error: there is no GPU, or it does not work.
    Driver(DriverError),
    /// The kernels do not compile for this GPU.
    Compilation(CompileError),
    /// cuBLAS reported an error.
    Blas(CublasError),
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CudaError::Library(name) => write!(f, "no GPU can be used: {name} cannot be loaded"),
            CudaError::Driver(error) => write!(f, "no GPU can be used: {error}"),
            CudaError::Compilation(CompileError::CompileError { log, .. }) => {
                write!(f, "the GPU's kernels do not compile: {}", log.to_string_lossy())
            }
            CudaError::Compilation(error) => write!(f, "the GPU's kernels do not compile: {error}"),
            CudaError::Blas(error) => write!(f, "cuBLAS cannot be used: {error}"),
        }
    }
}

impl std::error::Error for CudaError {}

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        CudaError::Driver(error)
    }
}

impl From<CompileError> for CudaError {
    fn from(error: CompileError) -> Self {
        CudaError::Compilation(error)
    }
}

impl From<CublasError> for CudaError {
    fn from(error: CublasError) -> Self {
        CudaError::Blas(error)
    }
}
