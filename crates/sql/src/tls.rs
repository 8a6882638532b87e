//! TLS to databases that have no driver of their own for it.

use std::sync::Arc;

use rustls::{
    ClientConfig, DEFAULT_VERSIONS, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    version::TLS12,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::{
    connection::{Connection, Kind, Tls},
    error::DbError,
};

pub(crate) type TlsStream<S = TcpStream> = tokio_rustls::client::TlsStream<S>;

/// Encrypts a connection as its plan demands.
pub(crate) async fn encrypt<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    host: &str,
    connection: &Connection,
) -> Result<TlsStream<S>, DbError> {
    let connector = TlsConnector::from(Arc::new(config(connection)?));
    let name = ServerName::try_from(host.to_owned()).map_err(|error| refused(&error))?;
    connector.connect(name, stream).await.map_err(|error| {
        // That a certificate is not accepted does not pass; that the server goes away may.
        let is_refusal = error.get_ref().is_some_and(|inner| inner.is::<Error>());
        if is_refusal { refused(&error) } else { error.into() }
    })
}

fn refused(error: &impl ToString) -> DbError {
    DbError::other(format!("TLS: {}", error.to_string()))
}

fn config(connection: &Connection) -> Result<ClientConfig, DbError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    // SQL Server wraps the handshake alone into its packets, and only before TLS 1.3 nothing of a handshake comes after its end.
    let versions = if connection.kind == Kind::Mssql { &[&TLS12] } else { DEFAULT_VERSIONS };
    let builder = builder.with_protocol_versions(versions).map_err(|error| refused(&error))?;
    let verifier: Arc<dyn ServerCertVerifier> = match connection.tls {
        Tls::VerifyCa | Tls::VerifyFull => {
            let roots = Arc::new(roots(connection.tls_ca.as_deref())?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
            let verifier = verifier.map_err(|error| refused(&error))?;
            if connection.tls == Tls::VerifyFull {
                verifier
            } else {
                Arc::new(AnyName { provider, authorities: Some(verifier) })
            }
        }
        Tls::Disable | Tls::Prefer | Tls::Require => Arc::new(AnyName { provider, authorities: None }),
    };
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Trusted authorities: from a file, else from the system.
fn roots(file: Option<&str>) -> Result<RootCertStore, DbError> {
    let mut store = RootCertStore::empty();
    let certificates = match file {
        Some(path) => CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| DbError::other(format!("{path}: cannot be read as certificates: {error}")))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    store.add_parsable_certificates(certificates);
    Ok(store)
}

/// Accepts every name in a certificate: of a known authority with `authorities`, else of any issuer. `require` promises encryption
/// alone, so only the signatures of the handshake are verified then.
#[derive(Debug)]
struct AnyName {
    provider: Arc<CryptoProvider>,
    authorities: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        match authorities.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
